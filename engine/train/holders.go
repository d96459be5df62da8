package train

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// How far Holders looks. A model is a tree of small structs; what is deeper or
// larger is not worth stopping a training for.
const (
	holderDepth  = 24
	holderValues = 1 << 20
)

// Holders walks the fields of a model, any struct behind a pointer, and says
// where it holds tensors whose blocks are in the snapshot: "Pyramid.features", a
// list of 50. It follows pointers, interfaces, structs, lists and maps, exported
// or not, but neither functions nor the engine's own types. There is one holder
// for each stack and place, whose items are those of all lists that the place names
// together; of one stack's, containers come first, the longest first. Only blocks of the given devices count. The model must stand still.
func Holders(model any, s *snapshot.Snapshot, devices ...*mem.Device) []snapshot.Holder {
	w := &walk{
		snapshot: s, devices: devices,
		stacks: make(map[site]snapshot.StackID),
		seen:   make(map[visit]bool),
		found:  make(map[snapshot.Holder]map[visit]int),
		holds:  make(map[reflect.Type]bool),
	}
	v := reflect.ValueOf(model)
	root := reflect.Indirect(v)
	if !root.IsValid() {
		return nil
	}
	w.value(v, place{path: root.Type().Name()}, 0)
	holders := make([]snapshot.Holder, 0, len(w.found))
	for h, lengths := range w.found {
		for _, n := range lengths {
			h.Items += n
		}
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b snapshot.Holder) int {
		return cmp.Or(
			cmp.Compare(a.Stack, b.Stack),
			cmp.Compare(b.Items, a.Items), // an attribute has none
			cmp.Compare(a.Path, b.Path),
		)
	})
	return holders
}

type site struct {
	device *mem.Device
	id     mem.SiteID
}

// visit is a pointer, or the data of a list or map, seen as one type.
type visit struct {
	at   uintptr
	kind reflect.Type
}

// place is where the walk is: the path, and the innermost container around.
type place struct {
	path    string
	element bool   // the path names a container, and the walk is at an element of it
	kind    string // of the innermost container; "" outside any
	in      visit  // that container
	items   int
}

// inside is the place of a container's elements.
func (p place) inside(kind string, in visit, items int) place {
	return place{path: p.open(), element: true, kind: kind, in: in, items: items}
}

func (p place) field(name string) place {
	return place{path: p.open() + "." + name, kind: p.kind, in: p.in, items: p.items}
}

// open is the path for something further inside: "stages[]" for an element.
func (p place) open() string {
	if p.element {
		return p.path + "[]"
	}
	return p.path
}

type walk struct {
	snapshot *snapshot.Snapshot
	devices  []*mem.Device
	stacks   map[site]snapshot.StackID
	seen     map[visit]bool
	// found has the lengths of the containers that make up each holder.
	found  map[snapshot.Holder]map[visit]int
	holds  map[reflect.Type]bool
	values int
}

var (
	tensorType = reflect.TypeFor[*engine.Tensor]()
	enginePath = reflect.TypeFor[engine.Tensor]().PkgPath()
)

// value walks one value. It never calls a method, and reads unexported fields
// through pointers only, which reflection allows.
func (w *walk) value(v reflect.Value, at place, depth int) {
	if w.values++; depth > holderDepth || w.values > holderValues || !w.mayHold(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Type() == tensorType {
			w.tensor((*engine.Tensor)(v.UnsafePointer()), at)
			return
		}
		if w.first(v) {
			w.value(v.Elem(), at, depth+1)
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.value(v.Elem(), at, depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i), at.field(v.Type().Field(i).Name), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && (v.IsNil() || !w.first(v)) {
			return
		}
		var in visit // an array has no data of its own, and is part of what holds it
		if v.Kind() == reflect.Slice {
			in = visit{v.Pointer(), v.Type()}
		}
		for i := range v.Len() {
			w.value(v.Index(i), at.inside("list", in, v.Len()), depth+1)
		}
	case reflect.Map:
		if v.IsNil() || !w.first(v) {
			return
		}
		in := visit{v.Pointer(), v.Type()}
		for it := v.MapRange(); it.Next(); {
			w.value(it.Key(), at.inside("map", in, v.Len()), depth+1)
			w.value(it.Value(), at.inside("map", in, v.Len()), depth+1)
		}
	}
}

// first reports whether what v points at was not walked before as this type.
func (w *walk) first(v reflect.Value) bool {
	key := visit{v.Pointer(), v.Type()}
	if w.seen[key] {
		return false
	}
	w.seen[key] = true
	return true
}

// mayHold reports whether a value of the type can lead to a tensor: it saves
// walking weights and images, number by number. A type that leads back to itself
// is walked.
func (w *walk) mayHold(t reflect.Type) bool {
	if t == tensorType {
		return true
	}
	if known, ok := w.holds[t]; ok {
		return known
	}
	w.holds[t] = true
	holds := false
	switch t.Kind() {
	case reflect.Interface:
		holds = true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		holds = w.mayHold(t.Elem())
	case reflect.Map:
		holds = w.mayHold(t.Key()) || w.mayHold(t.Elem())
	case reflect.Struct:
		for i := 0; i < t.NumField() && !holds && !plumbing(t); i++ {
			holds = w.mayHold(t.Field(i).Type)
		}
	}
	w.holds[t] = holds
	return holds
}

// plumbing reports whether the type is the engine's own: tensors that it lists
// are on the way, not held by the model.
func plumbing(t reflect.Type) bool {
	switch t.PkgPath() {
	case enginePath, enginePath + "/autodiff", enginePath + "/autodiff/registry", enginePath + "/mem", enginePath + "/cpu", enginePath + "/gpu":
		return true
	}
	return false
}

func (w *walk) tensor(t *engine.Tensor, at place) {
	if t.Released() || !slices.Contains(w.devices, t.Storage().Device()) {
		return
	}
	stack, ok := w.stack(t.Storage())
	if !ok {
		return
	}
	if at.kind == "" {
		at.kind = "attribute"
	}
	h := snapshot.Holder{Stack: stack, Path: at.path, Kind: at.kind}
	if w.found[h] == nil {
		w.found[h] = make(map[visit]int)
	}
	w.found[h][at.in] = at.items
}

// stack finds the snapshot's id of the stack that allocated a block; ok is false
// where the snapshot has no such stack.
func (w *walk) stack(s *mem.Storage) (id snapshot.StackID, ok bool) {
	key := site{s.Device(), s.Site()}
	if id, ok = w.stacks[key]; !ok {
		// A table of its own hashes the frames without adding to the snapshot's.
		own := snapshot.NewStacks()
		id, _ = w.snapshot.Stacks.Find(own.Hash(own.InternFrames(key.device.Stack(key.id))))
		w.stacks[key] = id
	}
	return id, id != snapshot.NoStack
}
