package torch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// writer pickles a tree in ways drawn at random: with the instructions of all
// protocols, memoised or not, shared or written again, in batches as protocols
// 1 to 5 have them (which write a single item without a mark) or one by one.
type writer struct {
	t    *rapid.T
	each bool // all items one by one
	out  []byte
	memo map[any]int
	next int
}

func (w *writer) coin(label string) bool { return rapid.Bool().Draw(w.t, label) }

func (w *writer) put(key any) {
	if !w.coin("memoise") {
		return
	}
	w.memo[key] = w.next
	switch i := w.next; {
	case w.coin("MEMOIZE"):
		w.out = append(w.out, byte(opMemoize))
	case i < 256 && w.coin("BINPUT"):
		w.out = append(w.out, byte(opMemoPut1), byte(i))
	case w.coin("LONG_BINPUT"):
		w.out = binary.LittleEndian.AppendUint32(append(w.out, byte(opMemoPut4)), uint32(i))
	default:
		w.out = append(strconv.AppendInt(append(w.out, byte(opMemoPut)), int64(i), 10), '\n')
	}
	w.next++
}

// get writes a reference, if the value is in the memo.
func (w *writer) get(key any) bool {
	i, ok := w.memo[key]
	if !ok {
		return false
	}
	switch {
	case i < 256 && w.coin("BINGET"):
		w.out = append(w.out, byte(opMemoGet1), byte(i))
	case w.coin("LONG_BINGET"):
		w.out = binary.LittleEndian.AppendUint32(append(w.out, byte(opMemoGet4)), uint32(i))
	default:
		w.out = append(strconv.AppendInt(append(w.out, byte(opMemoGet)), int64(i), 10), '\n')
	}
	return true
}

func (w *writer) text(s string) {
	if w.get(s) {
		return
	}
	switch rapid.IntRange(0, 2).Draw(w.t, "string") {
	case 0:
		w.out = append(append(w.out, byte(opString1), byte(len(s))), s...)
	case 1:
		w.out = append(binary.LittleEndian.AppendUint32(append(w.out, byte(opString4)), uint32(len(s))), s...)
	default:
		w.out = append(append(append(w.out, byte(opText)), s...), '\n')
	}
	w.put(s)
}

func (w *writer) integer(n int64) {
	switch {
	case n >= 0 && n < 256 && w.coin("BININT1"):
		w.out = append(w.out, byte(opInt1), byte(n))
	case n >= 0 && n < 1<<16 && w.coin("BININT2"):
		w.out = binary.LittleEndian.AppendUint16(append(w.out, byte(opInt2)), uint16(n))
	case n == int64(int32(n)) && w.coin("BININT"):
		w.out = binary.LittleEndian.AppendUint32(append(w.out, byte(opInt4)), uint32(n))
	case w.coin("LONG1"):
		w.out = binary.LittleEndian.AppendUint64(append(w.out, byte(opLong1), 8), uint64(n))
	default:
		w.out = append(strconv.AppendInt(append(w.out, byte(opLong)), n, 10), 'L', '\n')
	}
}

// container writes the beginning of a list or dict, empty.
func (w *writer) container(old, empty opcode, key any) {
	if w.coin("protocol 0") {
		w.out = append(w.out, byte(opMark), byte(old))
	} else {
		w.out = append(w.out, byte(empty))
	}
	w.put(key)
}

// fill writes n items, each by item, at most a batch at a time.
func (w *writer) fill(n, batch int, one, many opcode, item func(int)) {
	for i := 0; i < n; {
		if n-i == 1 || w.each {
			item(i)
			w.out = append(w.out, byte(one))
			i++
			continue
		}
		w.out = append(w.out, byte(opMark))
		for end := min(n, i+batch); i < end; i++ {
			item(i)
		}
		w.out = append(w.out, byte(many))
	}
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case string:
		w.text(v)
	case *big.Int:
		w.integer(v.Int64())
	case nil:
		w.out = append(w.out, byte(opNone))
	case *list:
		// A reference to a part of the snapshot other than frames is refused;
		// picklers write one only where Python shares the object.
		if w.get(v) {
			return
		}
		w.container(opList, opEmptyList, v)
		w.fill(len(v.items), rapid.IntRange(2, 5).Draw(w.t, "batch"), opAppend, opAppends, func(i int) { w.value(v.items[i]) })
	case *dict:
		if w.get(v) {
			return
		}
		w.container(opDict, opEmptyDict, v)
		w.fill(len(v.keys), len(v.keys), opSetItem, opSetItems, func(i int) {
			w.value(v.keys[i])
			w.value(v.values[i])
		})
	default:
		panic(fmt.Sprintf("%T", v))
	}
}

func integer(n int64) *big.Int { return big.NewInt(n) }

func makeDict(pairs ...any) *dict {
	d := &dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.set(pairs[i], pairs[i+1])
	}
	return d
}

// drawSnapshot makes a snapshot whose frames and stacks are shared.
func drawSnapshot(t *rapid.T) *dict {
	pick := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
	var frames, stacks []any
	for i := range 4 {
		frames = append(frames, makeDict("name", fmt.Sprint("f", i), "filename", "a.py", "line", integer(int64(i))))
	}
	for range 3 {
		stack := &list{}
		for range pick("frames", 5) {
			stack.items = append(stack.items, frames[pick("frame", len(frames))])
		}
		stacks = append(stacks, stack)
	}
	stack := func() any { return stacks[pick("stack", len(stacks))] }
	states := []string{"inactive", "active_allocated", "active_pending_free", "active_awaiting_free"}
	shuffled := func(pairs ...any) *dict {
		order := rapid.Permutation(indexes(len(pairs)/2)).Draw(t, "order")
		d := &dict{}
		for _, i := range order {
			d.set(pairs[2*i], pairs[2*i+1])
		}
		return d
	}
	segs, traces, notes := &list{}, &list{}, &list{}
	for i := range pick("segments", 4) {
		address := int64(1+i) << 20
		blocks := &list{}
		for j := range pick("blocks", 4) {
			blocks.items = append(blocks.items, shuffled("address", integer(address+int64(j)*512), "size", integer(512),
				"requested_size", integer(int64(pick("requested", 3))), "state", states[pick("state", 4)], "frames", stack(), "unknown", stack()))
		}
		segs.items = append(segs.items, shuffled("device", integer(int64(pick("device", 2))), "address", integer(address),
			"total_size", integer(4096), "segment_type", "small", "frames", stack(), "blocks", blocks, "future", makeDict("a", makeDict())))
	}
	for range pick("traces", 3) {
		trace := &list{}
		for k := range pick("events", 6) {
			actions := []string{"alloc", "free_requested", "free_completed", "oom", "later"}
			trace.items = append(trace.items, shuffled("action", actions[pick("action", 5)], "addr", integer(1<<20+int64(pick("at", 4))*512),
				"size", integer(int64(pick("size", 3))), "time_us", integer(int64(1000+k)), "frames", stack()))
		}
		traces.items = append(traces.items, trace)
	}
	for range pick("annotations", 3) {
		notes.items = append(notes.items, makeDict("stage", "END", "name", "Optimizer.step#SGD.step", "time_us", integer(int64(1000+pick("end", 6)))))
	}
	d := shuffled("segments", segs, "device_traces", traces, "external_annotations", notes, "allocator_settings", makeDict("n", nil))
	switch pick("wrapped", 4) {
	case 0:
		return makeDict("id", integer(1), "wrapped", d)
	case 1:
		return makeDict("id", integer(1), "wrapped", makeDict("segments", segs))
	case 2:
		return makeDict("empty", makeDict(), "segments", segs, "also empty", makeDict(), "device_traces", traces)
	}
	return d
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestHoweverASnapshotIsWrittenItReadsTheSame is the law that a pickle's
// wording does not matter, and that JSON says what a pickle says.
func TestHoweverASnapshotIsWrittenItReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawSnapshot(t)
		want, err := twin(d)
		if err != nil {
			t.Fatal(err)
		}
		w := writer{t: t, each: rapid.Bool().Draw(t, "each"), memo: map[any]int{}}
		w.out = append(w.out, byte(opProto), 4)
		w.value(d)
		w.out = append(w.out, byte(opStop))
		j, err := json.Marshal(plain(d))
		if err != nil {
			t.Fatal(err)
		}
		compareWithMachine(t, w.out)
		for _, text := range [][]byte{w.out, j} {
			s, err := Decode("file", bytes.NewReader(text), int64(len(text)), Options{})
			if err != nil {
				t.Fatalf("%v in %q", err, text)
			}
			if got := describe(s); got != want {
				t.Fatalf("%s in %q", firstDifference(got, want), text)
			}
		}
	})
}

// plain turns a tree into what json.Marshal writes.
func plain(v any) any {
	switch v := v.(type) {
	case *list:
		out := make([]any, len(v.items))
		for i := range out {
			out[i] = plain(v.items[i])
		}
		return out
	case *dict:
		out := map[string]any{}
		for i := range v.keys {
			out[v.keys[i].(string)] = plain(v.values[i])
		}
		return out
	}
	return v
}
