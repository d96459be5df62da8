// Package converted reads back the JSON that memdiag convert writes of a snapshot.
package converted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Schema is the value of a file's first key, and Version the value of its second; files with a higher version are not read.
const (
	Schema  = "memdiag snapshot"
	Version = 1
)

// Detect reports whether a file that unpacks to something that begins with head is such a
// snapshot, in whatever spaces.
func Detect(head []byte) bool {
	for _, token := range []string{"{", `"schema"`, ":", `"` + Schema + `"`} {
		var ok bool
		if head, ok = bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(token)); !ok {
			return false
		}
	}
	return true
}

// Limits on accepted values, as for the agent's files: sums stay within 64 bits.
const (
	maxBytes = 1 << 50
	maxCount = 1 << 40
	maxRows  = 1<<31 - 1
	maxTotal = 1 << 57
	maxSteps = 1 << 53
	maxKeys  = 100 // of later versions, too
)

// Decode reads one snapshot of size bytes. The name appears in errors only; they are
// *snapshot.FormatError. Elements of lists are decoded one at a time, and what their text may
// make is charged to the file's bound before it is made.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	stacks := opts.Stacks
	if stacks == nil {
		stacks = snapshot.NewStacks()
	}
	const field = 8 // bytes, of a block mostly
	d := &decoder{in: in, json: json.NewDecoder(in.JSON(field)), s: &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: stacks,
	}}
	if err := d.document(); err != nil {
		if f, ok := errors.AsType[*snapshot.FormatError](err); ok {
			return nil, f
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, in.Cut()
		}
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
			return nil, in.Fail("%s holds %s, which memdiag does not write there", t.Field, t.Value)
		}
		return nil, in.Fail("%v", err)
	}
	if err := in.Finish(); err != nil {
		return nil, err
	}
	d.s.HoldRequests()
	return d.s, nil
}

type decoder struct {
	in     *bounded.Input
	json   *json.Decoder
	s      *snapshot.Snapshot
	stacks []snapshot.StackID // of the file's list
	frames []snapshot.FrameID
	total  snapshot.Bytes
}

// document reads the one object that a file is.
func (d *decoder) document() error {
	if err := d.delim('{'); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // encoding/json takes nothing else for a key
		if seen[key] {
			return fmt.Errorf("it has %.40q twice", key)
		}
		if seen[key] = true; len(seen) > maxKeys {
			return fmt.Errorf("it has more than %d keys", maxKeys)
		}
		if (key == "segments" || key == "holders") && !(seen["stacks"] && seen["devices"]) {
			return fmt.Errorf("%q stands before the stacks and devices that it names", key)
		}
		if err := d.value(key); err != nil {
			return err
		}
	}
	if err := d.delim('}'); err != nil {
		return err
	}
	for _, key := range []string{"mark", "devices", "stacks", "segments"} {
		if !seen[key] {
			return fmt.Errorf("it has no %q", key)
		}
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		if _, ok := errors.AsType[*snapshot.FormatError](err); ok {
			return err
		}
		return errors.New("there is more after its end")
	}
	d.columns()
	return nil
}

func (d *decoder) delim(want json.Delim) error {
	token, err := d.json.Token()
	if err == nil && token != want {
		return fmt.Errorf("%.40q where %q should be", fmt.Sprint(token), want.String())
	}
	return err
}

// value reads what a key of the object has. Keys that this version does not know are passed over.
func (d *decoder) value(key string) error {
	switch key {
	case "schema_version":
		var version int
		if err := d.json.Decode(&version); err != nil {
			return err
		}
		if version > Version {
			return fmt.Errorf("it is of schema version %d; this memdiag reads %d", version, Version)
		}
	case "mark":
		return d.mark()
	case "devices":
		return each(d, d.device)
	case "stacks":
		return each(d, d.stack)
	case "segments":
		return each(d, d.segment)
	case "holders":
		return each(d, d.holder)
	case "sample_period_bytes":
		if err := d.json.Decode(&d.s.SamplePeriod); err != nil {
			return err
		}
		return within("sample period", int64(d.s.SamplePeriod), maxBytes)
	case "history":
		return d.history()
	case "notes":
		return each(d, d.note)
	default:
		return d.json.Decode(new(json.RawMessage))
	}
	return nil
}

// each decodes a list one element at a time.
func each[T any](d *decoder, take func(*T) error) error {
	if err := d.delim('['); err != nil {
		return err
	}
	for d.json.More() {
		var item T
		if err := d.json.Decode(&item); err != nil {
			return err
		}
		if err := take(&item); err != nil {
			return err
		}
	}
	return d.delim(']')
}

func (d *decoder) mark() error {
	var m mark
	if err := d.json.Decode(&m); err != nil {
		return err
	}
	to := &d.s.Mark
	to.Phase, to.StepCounted, to.BatchElements, to.SequenceLength = m.Phase, m.StepCounted, m.Batch, m.Sequence
	d.s.Producer = m.Producer
	if m.Step != nil {
		to.Step = *m.Step
	}
	if m.Epoch != nil {
		to.Epoch = *m.Epoch
	}
	if m.Rank != nil {
		d.s.Rank = *m.Rank
	}
	if m.Time != nil {
		to.Time = m.Time.UTC()
	}
	return cmp.Or(within("step", max(to.Step, 0), maxSteps), within("epoch", max(to.Epoch, 0), maxSteps), within("rank", int64(max(d.s.Rank, 0)), maxCount),
		within("number of elements in a batch", m.Batch, maxSteps), within("length of a sequence", m.Sequence, maxSteps))
}

func (d *decoder) note(text *string) error {
	const kept = 48 // bytes, with the garbage of a growing list
	d.s.Notes = append(d.s.Notes, *text)
	return d.in.Charge(kept)
}

// within refuses a figure that no snapshot has.
func within(what string, n, most int64) error {
	if n < 0 || n > most {
		return fmt.Errorf("it has a %s of %d", what, n)
	}
	return nil
}

func (d *decoder) device(v *device) error {
	m := snapshot.Meters{Requested: v.Meters.Requested, Allocated: v.Meters.Allocated, Active: v.Meters.Allocated, Reserved: v.Meters.Allocated, Driver: snapshot.Unknown}
	limit := snapshot.Unknown
	for _, known := range []struct {
		to   *snapshot.Bytes
		from *snapshot.Bytes
	}{{&m.Active, v.Meters.Active}, {&m.Reserved, v.Meters.Reserved}, {&m.Driver, v.Meters.Driver}, {&limit, v.Limit}} {
		if known.from != nil {
			*known.to = *known.from
		}
	}
	for _, n := range []snapshot.Bytes{m.Requested, m.Allocated, m.Active, m.Reserved, max(m.Driver, 0), max(limit, 0)} {
		if err := within("meter", int64(n), maxTotal); err != nil {
			return err
		}
	}
	if err := within("device", int64(v.Index), maxCount); err != nil {
		return err
	}
	d.s.Devices = append(d.s.Devices, snapshot.Device{Kind: v.Kind, Index: v.Index, Name: v.Name, Limit: limit, Meters: m})
	return nil
}

func (d *decoder) stack(v *stack) error {
	if len(v.Frames) > totals.MaxDepth {
		return fmt.Errorf("a stack of %d frames", len(v.Frames))
	}
	d.frames = d.frames[:0]
	for _, f := range v.Frames {
		line := -1
		if f.Line != nil {
			line = *f.Line
		}
		d.frames = append(d.frames, d.s.Stacks.Frame(snapshot.Frame{Function: f.Function, File: f.File, Line: line}))
	}
	d.stacks = append(d.stacks, d.s.Stacks.Intern(d.frames))
	return nil
}

// stackAt is the stack of a place in the file's list.
func (d *decoder) stackAt(at int) (snapshot.StackID, error) {
	if at < 0 || at >= len(d.stacks) {
		return 0, fmt.Errorf("stack %d of %d", at, len(d.stacks))
	}
	return d.stacks[at], nil
}

func (d *decoder) segment(v *segment) error {
	s := d.s
	to := snapshot.Segment{Device: v.Device, Size: v.Size, Stream: v.Stream, Private: v.Private, Expandable: v.Expandable, FirstBlock: s.Blocks.Len(), NumBlocks: len(v.Blocks)}
	var err error
	switch {
	case v.Device < 0 || v.Device >= len(s.Devices):
		return fmt.Errorf("a segment is on device %d of %d", v.Device, len(s.Devices))
	case s.Blocks.Len() > maxRows-len(v.Blocks):
		return fmt.Errorf("more than %d blocks", maxRows)
	case v.Pool == snapshot.SmallPool.String():
		to.Pool = snapshot.SmallPool
	case v.Pool != snapshot.LargePool.String():
		return fmt.Errorf("a segment is of the pool %.40q", v.Pool)
	}
	if err := within("segment", int64(v.Size), maxTotal); err != nil {
		return err
	}
	if to.Address, err = address(v.Address); err != nil {
		return err
	}
	if to.Stack, err = d.stackAt(v.Stack); err != nil {
		return err
	}
	for i := range v.Blocks {
		if err := d.block(&v.Blocks[i], int32(len(s.Segments))); err != nil {
			return err
		}
	}
	s.Segments = append(s.Segments, to)
	return nil
}

// The value in a column for a missing value, until it is known whether any block has one.
const noOwners = snapshot.Owners(1 << 7)

func (d *decoder) block(v *block, segment int32) error {
	at, err := address(v.Address)
	if err != nil {
		return err
	}
	id, err := d.stackAt(v.Stack)
	if err != nil {
		return err
	}
	state, ok := states[v.State]
	if !ok {
		return fmt.Errorf("a block is %.40q", v.State)
	}
	if err := cmp.Or(within("block", int64(v.Size), maxBytes), within("block that asked for a size", int64(v.Requested), maxBytes)); err != nil {
		return err
	}
	if d.total += max(v.Size, v.Requested); d.total > maxTotal {
		return fmt.Errorf("its blocks add up to more than %s", snapshot.Bytes(maxTotal))
	}
	count, step, birth, event, owners := int64(-1), snapshot.NoStep, int64(0), int64(0), noOwners
	if v.Count != nil {
		if count = *v.Count; count < 0 || count > maxCount {
			return fmt.Errorf("a row of %d blocks", count)
		}
	}
	if v.BirthStep != nil {
		if step = *v.BirthStep; step < 0 || step > maxSteps {
			return fmt.Errorf("a block born at step %d", step)
		}
	}
	if v.BirthTime != nil {
		birth = *v.BirthTime
	}
	if v.BirthEvent != nil {
		if event = *v.BirthEvent; event < 0 || event > maxCount {
			return fmt.Errorf("a block born at event %d", event)
		}
	}
	if v.Owners != nil {
		if owners, ok = snapshot.OwnersNamed(v.Owners); !ok {
			return fmt.Errorf("a block is held by %.80q", v.Owners)
		}
	}
	var category snapshot.Category
	if v.Category != "" {
		if category, ok = snapshot.CategoryNamed(v.Category); !ok {
			return fmt.Errorf("a block is of the category %.40q", v.Category)
		}
	}
	b := &d.s.Blocks
	b.Segment, b.Address, b.Size, b.Requested = append(b.Segment, segment), append(b.Address, at), append(b.Size, v.Size), append(b.Requested, v.Requested)
	b.State, b.Stack = append(b.State, state), append(b.Stack, id)
	b.Count, b.Owners = append(b.Count, count), append(b.Owners, owners)
	b.Category = append(b.Category, category)
	b.BirthStep, b.BirthTime, b.BirthEvent = append(b.BirthStep, step), append(b.BirthTime, birth), append(b.BirthEvent, event)
	return nil
}

var states = map[string]snapshot.State{
	snapshot.Free.String(): snapshot.Free, snapshot.Live.String(): snapshot.Live, snapshot.Pending.String(): snapshot.Pending,
}

// columns removes the columns that no block has values for, and the placeholders in the others.
func (d *decoder) columns() {
	b := &d.s.Blocks
	if !settle(b.Count, -1, 0) {
		b.Count = nil
	}
	if !settle(b.BirthStep, snapshot.NoStep, snapshot.NoStep) {
		b.BirthStep = nil
	}
	if !settle(b.BirthTime, 0, 0) {
		b.BirthTime = nil
	}
	if !settle(b.BirthEvent, 0, 0) {
		b.BirthEvent = nil
	}
	if !settle(b.Owners, noOwners, 0) {
		b.Owners = nil
	}
	if !settle(b.Category, snapshot.NoCategory, snapshot.NoCategory) {
		b.Category = nil
	}
}

// settle replaces the placeholder none in a column by by, and reports whether the column had any value.
func settle[T comparable](column []T, none, by T) (told bool) {
	for i, v := range column {
		if v == none {
			column[i] = by
		} else {
			told = true
		}
	}
	return told
}

func (d *decoder) holder(v *holder) error {
	id, err := d.stackAt(v.Stack)
	if err != nil {
		return err
	}
	if err := cmp.Or(within("holder", int64(v.Items), maxSteps), within("holder counted at a step", v.Counted, maxSteps), within("holder's bound", int64(v.Bound), maxSteps)); err != nil {
		return err
	}
	d.s.Holders = append(d.s.Holders, snapshot.Holder{Stack: id, Kind: v.Kind, Path: v.Path, Items: v.Items, Counted: v.Counted, Bound: v.Bound})
	return nil
}

func (d *decoder) history() error {
	var h history
	if err := d.json.Decode(&h); err != nil {
		return err
	}
	to := &d.s.History
	to.Events, to.LostFrees, to.Process = h.Events, h.LostFrees, h.Process
	if h.First != nil {
		to.First = h.First.UTC()
	}
	if h.Last != nil {
		to.Last = h.Last.UTC()
	}
	return cmp.Or(within("number of events", h.Events, maxSteps), within("number of lost frees", h.LostFrees, maxSteps))
}

// address reads "0x7f0000000000"; "" is none.
func address(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("an address of %.40q", text)
	}
	return n, nil
}
