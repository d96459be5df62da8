// Package agent reads the snapshots that the agent of memdiag record writes in
// the process it watches. They are JSON, made for being written fast; their
// layout is that agent's affair and may change with it.
package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/secret"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// schema is the version of the layout that is read.
const schema = 1

// prefix is how every file begins.
const prefix = `{"memdiag_agent":`

// Detect reports whether a file that unpacks to something that begins with head
// is such a snapshot.
func Detect(head []byte) bool { return bytes.HasPrefix(head, []byte(prefix)) }

// document is a file. Columns of blocks have one value per row, except count, which is absent if every row is one block, and category,
// which is absent if unknown.
type document struct {
	Schema   int      `json:"memdiag_agent"`
	Producer string   `json:"producer"`
	Step     *int64   `json:"step"`
	Rank     *int     `json:"rank"`
	Phase    string   `json:"phase"`
	Epoch    *int64   `json:"epoch"` // absent in older files
	Batch    int64    `json:"batch"` // absent if the program marked none
	Length   int64    `json:"length"`
	Time     int64    `json:"time_us"`
	Awaits   bool     `json:"awaits_steps"` // absent if false
	Waited   int64    `json:"waited_us"`    // absent in older files
	Devices  []device `json:"devices"`
	Frames   []frame  `json:"frames"`
	Stacks   [][]int  `json:"stacks"`
	Blocks   struct {
		Device  []int    `json:"device"`
		Address []uint64 `json:"address"`
		Size    []int64  `json:"size"`
		Stack   []int    `json:"stack"`
		Birth   []int64  `json:"birth"`
		Count   []int64  `json:"count"`
		// Category is a snapshot.Category by its number.
		Category []int `json:"category"`
	} `json:"blocks"`
	// Categories are those of blocks elsewhere, each with its address.
	Categories [][2]uint64      `json:"categories"`
	Holders    []holder         `json:"holders"`
	At         []int            `json:"at"`     // stacks; absent in older files
	Anew       []int            `json:"anew"`   // the same
	Native     []int            `json:"native"` // the same
	Events     map[string]int64 `json:"events"` // the same
	Notes      []string         `json:"notes"`
	Role       string           `json:"role"`
	PID        int              `json:"pid"`
}

type device struct {
	Kind  snapshot.DeviceKind `json:"kind"`
	Index int                 `json:"index"`
	Name  string              `json:"name"`
	// Space is equal in all snapshots in which an address means the same block; 0 if there are no addresses.
	Space  uint64          `json:"space"`
	Limit  *snapshot.Bytes `json:"limit"`
	Meters struct {
		Requested snapshot.Bytes  `json:"requested"`
		Allocated snapshot.Bytes  `json:"allocated"`
		Active    snapshot.Bytes  `json:"active"`
		Reserved  snapshot.Bytes  `json:"reserved"`
		Driver    *snapshot.Bytes `json:"driver"`
		Peak      snapshot.Bytes  `json:"peak"`   // absent if unknown
		Mapped    snapshot.Bytes  `json:"mapped"` // the same
	} `json:"meters"`
}

type holder struct {
	Stack int    `json:"stack"`
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Items int    `json:"items"`
	// Counted is the step at which Items were counted; absent if it is the snapshot's.
	Counted int64 `json:"counted"`
	// Bound is the most items allowed; absent if unknown.
	Bound int `json:"bound"`
	// Each is the size of an item; absent if not measured, and 0 if unknown.
	Each int64 `json:"each"`
	// From is the stack that was seen to add an item; absent or 0 for none.
	From int `json:"from"`
	// Address is the address of a block on a GPU, which another recorder has with its stack; absent if the stack is given.
	Address uint64 `json:"address"`
}

// masked is a path to what holds memory without secrets in the keys of its dictionaries. Each has four digits of its hash in
// their place, so that what two keys hold is not taken for one.
func masked(path string) string {
	if !strings.Contains(path, "[") {
		return path
	}
	parts := strings.Split(secret.Text(path), secret.Mask)
	var b strings.Builder
	b.WriteString(parts[0])
	left := strings.TrimPrefix(path, parts[0])
	for _, part := range parts[1:] {
		hidden, rest, found := strings.Cut(left, part)
		if !found || part == "" {
			hidden, rest = left, ""
		}
		sum := sha256.Sum256([]byte(hidden))
		fmt.Fprintf(&b, "%s%x%s", secret.Mask, sum[:2], part)
		left = rest
	}
	return b.String()
}

func (h *holder) of(stack snapshot.StackID) snapshot.Holder {
	return snapshot.Holder{Stack: stack, Path: masked(h.Path), Kind: h.Kind, Items: max(h.Items, 0), Counted: max(h.Counted, 0), Bound: max(h.Bound, 0), Each: snapshot.Bytes(max(h.Each, 0))}
}

// frame is written as [function, file, line].
type frame snapshot.Frame

// UnmarshalJSON reads a frame.
func (f *frame) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&f.Function, &f.File, &f.Line})
}

// Limits on accepted values, as for PyTorch's files: sums stay within 64 bits.
const (
	maxBytes = 1 << 50
	maxCount = 1 << 40
	maxRows  = 1<<31 - 1
	maxTotal = 1 << 60
)

// Decode reads one snapshot of size bytes. The name appears in errors only; they
// are *snapshot.FormatError. What the text may make is charged to the file's bound
// while it is read, before any of it is made.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	s, _, err := decode(name, r, size, opts)
	return s, err
}

// elsewhere has the blocks of another recorder, by address.
type elsewhere struct {
	held       []holder
	categories map[uint64]snapshot.Category
}

// decode also returns what the file says of blocks that it does not have.
func decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, *elsewhere, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	var d document
	const number = 30 // bytes, with a note or a name in some cases
	decoder := json.NewDecoder(in.JSON(number))
	if err := decoder.Decode(&d); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
			return nil, nil, in.Fail("not read: %s holds %s, which no agent writes there", t.Field, t.Value)
		}
		if f, ok := errors.AsType[*snapshot.FormatError](err); ok {
			return nil, nil, f
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, nil, in.Cut()
		}
		return nil, nil, in.Fail("not read: %v", err)
	}
	if d.Schema != schema {
		f := in.Fail("version %d of the agent's layout; this memdiag reads %d", d.Schema, schema)
		f.Hint = "read the run with the memdiag that recorded it"
		return nil, nil, f
	}
	if err := in.Finish(); err != nil {
		return nil, nil, err
	}
	beside := &elsewhere{categories: make(map[uint64]snapshot.Category)}
	s, err := d.snapshot(cmp.Or(opts.Stacks, snapshot.NewStacks()), beside)
	if err != nil {
		return nil, nil, in.Fail("%v", err)
	}
	return s, beside, nil
}

func (d *document) snapshot(stacks *snapshot.Stacks, beside *elsewhere) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Phase: d.Phase},
		Rank: snapshot.NoRank, Producer: d.Producer, Role: secret.Text(d.Role), PID: d.PID, Stacks: stacks, Notes: d.Notes,
	}
	for i := range s.Notes {
		s.Notes[i] = secret.Text(s.Notes[i])
	}
	if d.Step != nil && *d.Step >= 0 {
		s.Mark.Step = *d.Step
	}
	if d.Epoch != nil && *d.Epoch >= 0 {
		s.Mark.Epoch = *d.Epoch
	}
	if d.Rank != nil && *d.Rank >= 0 {
		s.Rank = *d.Rank
	}
	if d.Batch > 0 && d.Length > 0 && d.Batch <= math.MaxInt32 && d.Length <= math.MaxInt32 { // one of them alone does not give the size of the input
		s.Mark.BatchElements, s.Mark.SequenceLength = d.Batch*d.Length, d.Length
	}
	if d.Time > 0 {
		s.Mark.Time = time.UnixMicro(d.Time).UTC()
	}
	for _, v := range d.Devices {
		m := snapshot.Meters{
			Requested: v.Meters.Requested, Allocated: v.Meters.Allocated, Active: v.Meters.Active,
			Reserved: v.Meters.Reserved, Driver: snapshot.Unknown,
		}
		if v.Meters.Driver != nil {
			m.Driver = *v.Meters.Driver
		}
		limit := snapshot.Unknown
		if v.Limit != nil && *v.Limit >= 0 {
			limit = *v.Limit
		}
		s.Devices = append(s.Devices, snapshot.Device{Kind: v.Kind, Index: v.Index, Name: v.Name, Limit: limit, Meters: m, Peak: max(v.Meters.Peak, 0), Mapped: max(v.Meters.Mapped, 0)})
	}
	ids, err := d.intern(stacks)
	if err != nil {
		return nil, err
	}
	if err := d.rows(s, ids); err != nil {
		return nil, err
	}
	for _, h := range d.Holders {
		if h.Stack < 0 || h.Stack >= len(ids) {
			return nil, fmt.Errorf("a holder names stack %d of %d", h.Stack, len(ids))
		}
		if h.Address != 0 {
			beside.held = append(beside.held, h)
			continue
		}
		if h.From < 0 || h.From >= len(ids) {
			return nil, fmt.Errorf("a holder has items from stack %d of %d", h.From, len(ids))
		}
		s.Holders = append(s.Holders, h.of(ids[h.Stack]))
		s.Holders[len(s.Holders)-1].From = ids[h.From]
	}
	for _, c := range d.Categories {
		if c[1] == 0 || c[1] >= uint64(snapshot.Categories) {
			return nil, fmt.Errorf("the block at %#x has category %d of %d", c[0], c[1], snapshot.Categories)
		}
		beside.categories[c[0]] = snapshot.Category(c[1])
	}
	if s.At, err = stacksOf(d.At, ids, "a thread is at"); err != nil {
		return nil, err
	}
	if s.Anew, err = stacksOf(d.Anew, ids, "larger blocks are of"); err != nil {
		return nil, err
	}
	if s.Native, err = stacksOf(d.Native, ids, "native memory is of"); err != nil {
		return nil, err
	}
	s.AwaitsSteps = d.Awaits
	s.Events, s.Waited = d.Events, time.Duration(d.Waited)*time.Microsecond
	return s, nil
}

func stacksOf(numbers []int, ids []snapshot.StackID, what string) (of []snapshot.StackID, err error) {
	for _, n := range numbers {
		if n < 0 || n >= len(ids) {
			return nil, fmt.Errorf("%s stack %d of %d", what, n, len(ids))
		}
		of = append(of, ids[n])
	}
	return of, nil
}

// intern returns the ids of the document's stacks.
func (d *document) intern(stacks *snapshot.Stacks) ([]snapshot.StackID, error) {
	frames := make([]snapshot.FrameID, len(d.Frames))
	for i, f := range d.Frames {
		f.Function = masked(f.Function) // for items of a container it is the container's path
		frames[i] = stacks.Frame(snapshot.Frame(f))
	}
	ids := make([]snapshot.StackID, len(d.Stacks))
	var list []snapshot.FrameID
	for i, stack := range d.Stacks {
		list = list[:0]
		for _, f := range stack {
			if f < 0 || f >= len(frames) {
				return nil, fmt.Errorf("stack %d names frame %d of %d", i, f, len(frames))
			}
			list = append(list, frames[f])
		}
		ids[i] = stacks.Intern(list)
	}
	return ids, nil
}

// rows fills in the blocks, by device and address, each device's in one segment.
func (d *document) rows(s *snapshot.Snapshot, ids []snapshot.StackID) error {
	b := &d.Blocks
	n := len(b.Size)
	if len(b.Device) != n || len(b.Address) != n || len(b.Stack) != n || len(b.Birth) != n || b.Count != nil && len(b.Count) != n || b.Category != nil && len(b.Category) != n {
		return fmt.Errorf("columns of blocks differ in length")
	}
	if n > maxRows {
		return fmt.Errorf("%d blocks", n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if b.Device[i] < 0 || b.Device[i] >= len(d.Devices) {
			return fmt.Errorf("a block is on device %d of %d", b.Device[i], len(d.Devices))
		}
		if b.Stack[i] < 0 || b.Stack[i] >= len(ids) {
			return fmt.Errorf("a block has stack %d of %d", b.Stack[i], len(ids))
		}
		if b.Size[i] < 0 || b.Size[i] > maxBytes || b.Count != nil && (b.Count[i] < 1 || b.Count[i] > maxCount) {
			return fmt.Errorf("a block of %d bytes", b.Size[i])
		}
		if b.Category != nil && (b.Category[i] < 0 || b.Category[i] >= snapshot.Categories) {
			return fmt.Errorf("a block has category %d of %d", b.Category[i], snapshot.Categories)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(b.Device[x], b.Device[y]), cmp.Compare(b.Address[x], b.Address[y]))
	})
	out := &s.Blocks
	var total int64
	born := false
	for row, i := range order {
		if row == 0 || b.Device[i] != b.Device[order[row-1]] {
			s.Segments = append(s.Segments, snapshot.Segment{Device: b.Device[i], Address: d.Devices[b.Device[i]].Space, FirstBlock: row})
		}
		segment := &s.Segments[len(s.Segments)-1]
		segment.NumBlocks++
		segment.Size += snapshot.Bytes(b.Size[i])
		if total += b.Size[i]; total > maxTotal {
			return fmt.Errorf("the blocks add up to more than %s", snapshot.Bytes(maxTotal))
		}
		out.Segment = append(out.Segment, int32(len(s.Segments)-1))
		out.Address = append(out.Address, b.Address[i])
		out.Size = append(out.Size, snapshot.Bytes(b.Size[i]))
		out.Requested = append(out.Requested, snapshot.Bytes(b.Size[i]))
		out.State = append(out.State, snapshot.Live)
		out.Stack = append(out.Stack, ids[b.Stack[i]])
		out.BirthStep = append(out.BirthStep, max(b.Birth[i], snapshot.NoStep))
		born = born || b.Birth[i] >= 0
		if b.Count != nil {
			out.Count = append(out.Count, b.Count[i])
		}
		if b.Category != nil {
			out.Category = append(out.Category, snapshot.Category(b.Category[i]))
		}
	}
	if !born {
		out.BirthStep = nil
	}
	d.meters(s)
	return nil
}

// meters completes those of devices that have blocks: nothing is rounded or cached.
func (d *document) meters(s *snapshot.Snapshot) {
	for i := range s.Segments {
		seg := &s.Segments[i]
		m := &s.Devices[seg.Device].Meters
		m.Requested, m.Allocated, m.Active, m.Reserved = seg.Size, seg.Size, seg.Size, seg.Size
	}
}
