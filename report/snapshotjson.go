package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/converted"
)

type fullMarkJSON struct {
	markJSON
	StepCounted bool       `json:"step_counted,omitempty"`
	Batch       int64      `json:"batch_elements,omitempty"`
	Sequence    int64      `json:"sequence_length,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
}

type fullDeviceJSON struct {
	Kind   string     `json:"kind"`
	Index  int        `json:"index"`
	Name   string     `json:"name,omitempty"`
	Limit  *int64     `json:"limit_bytes,omitempty"`
	Meters metersJSON `json:"meters"`
}

type stackJSON struct {
	Hash   string      `json:"stack_hash"`
	Frames []frameJSON `json:"frames"`
}

type segmentJSON struct {
	Device     int         `json:"device"`
	Address    string      `json:"address,omitempty"`
	Size       int64       `json:"bytes"`
	Stream     uint64      `json:"stream"`
	Pool       string      `json:"pool"`
	Private    string      `json:"private_pool,omitempty"`
	Expandable bool        `json:"expandable,omitempty"`
	Stack      int         `json:"stack"`
	Blocks     []blockJSON `json:"blocks"`
}

type blockJSON struct {
	Address    string   `json:"address,omitempty"`
	Size       int64    `json:"bytes"`
	Requested  int64    `json:"requested_bytes"`
	State      string   `json:"state"`
	Stack      int      `json:"stack"`
	Count      *int64   `json:"blocks,omitempty"`
	BirthStep  *int64   `json:"birth_step,omitempty"`
	BirthTime  *int64   `json:"birth_time_us,omitempty"`
	BirthEvent *int64   `json:"birth_event,omitempty"`
	Owners     []string `json:"owners,omitzero"` // an empty list if there are none
	Category   string   `json:"category,omitempty"`
}

type fullHolderJSON struct {
	Stack int    `json:"stack"`
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Items int    `json:"items,omitempty"`
	// Counted is as in holderJSON.
	Counted int64 `json:"items_at_step,omitempty"`
	Bound   int   `json:"bound,omitempty"` // as in holderJSON
}

// SnapshotJSON writes all of a snapshot as one object, with one line per element of a list; docs/formats.md lists its keys. Blocks,
// segments and holders refer to stacks by their index in the list "stacks", whose first item is "no stack". Addresses are hexadecimal
// texts, since some readers have no 64-bit integers. Keys for unknown values are left out; names are escaped as JSON escapes its own.
//
// It builds one segment at a time, so its memory use depends on the largest segment.
func SnapshotJSON(w io.Writer, s *snapshot.Snapshot) error {
	out := lineWriter{w: w}
	mark := fullMarkJSON{markOf(s), s.Mark.StepCounted, s.Mark.BatchElements, s.Mark.SequenceLength, knownTime(s.Mark.Time)}
	out.text("{\n\"schema\": %s,\n\"schema_version\": %d,\n\"mark\": %s,\n", out.json(converted.Schema), converted.Version, out.json(mark))
	list(&out, "devices", len(s.Devices), func(i int) any {
		d := s.Devices[i]
		return fullDeviceJSON{string(d.Kind), d.Index, d.Name, knownBytes(d.Limit), metersJSONOf(s, &d)}
	})
	stacks := usedStacks(s)
	list(&out, "stacks", len(stacks.order), func(i int) any {
		id := stacks.order[i]
		if id == snapshot.NoStack {
			return stackJSON{hashText(0), []frameJSON{}}
		}
		return stackJSON{hashText(s.Stacks.Hash(id)), framesOf(s.Stacks.Frames(id))}
	})
	list(&out, "segments", len(s.Segments), func(i int) any { return segmentOf(s, i, stacks.place) })
	list(&out, "holders", len(s.Holders), func(i int) any {
		h := s.Holders[i]
		return fullHolderJSON{stacks.place[h.Stack], h.Kind, h.Path, h.Items, h.Counted, h.Bound}
	})
	h := s.History
	if s.SamplePeriod > 0 {
		out.text("\"sample_period_bytes\": %d,\n", int64(s.SamplePeriod))
	}
	out.text("\"history\": %s,\n\"notes\": %s\n}\n",
		out.json(historyJSON{h.Events, knownTime(h.First), knownTime(h.Last), h.LostFrees, h.Process}), out.json(append([]string{}, s.Notes...)))
	return out.err
}

func segmentOf(s *snapshot.Snapshot, at int, place map[snapshot.StackID]int) segmentJSON {
	seg, b := &s.Segments[at], &s.Blocks
	out := segmentJSON{
		Device: seg.Device, Address: addressText(seg.Address), Size: int64(seg.Size), Stream: seg.Stream, Pool: seg.Pool.String(),
		Private: seg.Private, Expandable: seg.Expandable, Stack: place[seg.Stack], Blocks: make([]blockJSON, seg.NumBlocks),
	}
	for i := range out.Blocks {
		row := seg.FirstBlock + i
		block := blockJSON{
			Address: addressText(b.Address[row]), Size: int64(b.Size[row]), Requested: int64(b.Requested[row]),
			State: b.State[row].String(), Stack: place[b.Stack[row]],
		}
		if b.Count != nil {
			block.Count = &b.Count[row]
		}
		if b.BirthStep != nil && b.BirthStep[row] != snapshot.NoStep {
			block.BirthStep = &b.BirthStep[row]
		}
		if b.BirthTime != nil && b.BirthTime[row] != 0 {
			block.BirthTime = &b.BirthTime[row]
		}
		if b.BirthEvent != nil && b.BirthEvent[row] != 0 {
			block.BirthEvent = &b.BirthEvent[row]
		}
		if b.Owners != nil {
			block.Owners = append([]string{}, b.Owners[row].Names()...)
		}
		if b.Category != nil {
			block.Category = b.Category[row].String()
		}
		out.Blocks[i] = block
	}
	return out
}

func addressText(a uint64) string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", a)
}

// stackList numbers the stacks that a snapshot uses; its table may also have those of other snapshots.
type stackList struct {
	order []snapshot.StackID
	place map[snapshot.StackID]int
}

func usedStacks(s *snapshot.Snapshot) stackList {
	l := stackList{[]snapshot.StackID{snapshot.NoStack}, map[snapshot.StackID]int{snapshot.NoStack: 0}}
	use := func(id snapshot.StackID) {
		if _, ok := l.place[id]; !ok {
			l.place[id] = len(l.order)
			l.order = append(l.order, id)
		}
	}
	for i := range s.Segments {
		use(s.Segments[i].Stack)
	}
	for _, id := range s.Blocks.Stack {
		use(id)
	}
	for i := range s.Holders {
		use(s.Holders[i].Stack)
	}
	return l
}

// lineWriter keeps its first error.
type lineWriter struct {
	w   io.Writer
	err error
}

func (l *lineWriter) text(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format, args...)
	}
}

// json is v on one line, escaped for a terminal.
func (l *lineWriter) json(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil && l.err == nil {
		l.err = err
	}
	var b bytes.Buffer
	escapeJSON(&b, text)
	return b.Bytes()
}

func list(l *lineWriter, key string, n int, item func(i int) any) {
	l.text("%q: [", key)
	for i := range n {
		between := ",\n"
		if i == 0 {
			between = "\n"
		}
		l.text("%s%s", between, l.json(item(i)))
	}
	l.text("\n],\n")
}
