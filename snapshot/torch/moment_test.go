package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

// world is what an allocator holds: sizes of blocks and segments by address.
type world struct {
	blocks, pending map[uint64]uint64
	segments        map[uint64]uint64
}

func (w *world) copy() world {
	return world{maps.Clone(w.blocks), maps.Clone(w.pending), maps.Clone(w.segments)}
}

func (w *world) live() (n uint64) {
	for _, size := range w.blocks {
		n += size
	}
	for _, size := range w.pending {
		n += size
	}
	return n
}

const segmentSize = 4096

// lived is a record of events, and what was there after each; worlds[0] is before the first.
type lived struct {
	events []map[string]any
	worlds []world
}

// live draws a history of an allocator with segments of eight blocks of 512 bytes.
func live(t *rapid.T) lived {
	w := world{make(map[uint64]uint64), make(map[uint64]uint64), make(map[uint64]uint64)}
	var out lived
	out.worlds = append(out.worlds, w.copy())
	for i := range rapid.IntRange(1, 120).Draw(t, "events") {
		event := map[string]any{"time_us": 1_750_000_000_000_000 + i, "stream": 0}
		do := func(action string, address, size uint64) {
			event["action"], event["addr"], event["size"] = action, address, size
		}
		segments := slices.Sorted(maps.Keys(w.segments))
		var free []uint64
		for _, segment := range segments {
			for at := segment; at < segment+segmentSize; at += 512 {
				if w.blocks[at] == 0 && w.pending[at] == 0 {
					free = append(free, at)
				}
			}
		}
		blocks, pending := slices.Sorted(maps.Keys(w.blocks)), slices.Sorted(maps.Keys(w.pending))
		idle := slices.DeleteFunc(segments, func(s uint64) bool {
			return slices.ContainsFunc(slices.Concat(blocks, pending), func(b uint64) bool { return b >= s && b < s+segmentSize })
		})
		switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
		case what <= 3 && len(free) > 0:
			at, size := rapid.SampledFrom(free).Draw(t, "block"), rapid.Uint64Range(1, 512).Draw(t, "size")
			w.blocks[at] = size
			do("alloc", at, size)
		case what <= 6 && len(blocks) > 0:
			at := rapid.SampledFrom(blocks).Draw(t, "freed")
			do("free_requested", at, w.blocks[at])
			w.pending[at] = w.blocks[at]
			delete(w.blocks, at)
		case what <= 8 && len(pending) > 0:
			at := rapid.SampledFrom(pending).Draw(t, "completed")
			do("free_completed", at, w.pending[at])
			delete(w.pending, at)
		case what == 9 && len(idle) > 0:
			at := rapid.SampledFrom(idle).Draw(t, "segment")
			do("segment_free", at, segmentSize)
			delete(w.segments, at)
		default:
			at := segmentSize * rapid.Uint64Range(1, 20).Draw(t, "new segment")
			if w.segments[at] != 0 {
				do("snapshot", 0, 0)
				break
			}
			w.segments[at] = segmentSize
			do("segment_alloc", at, segmentSize)
		}
		out.events = append(out.events, event)
		out.worlds = append(out.worlds, w.copy())
	}
	return out
}

// text is the file that PyTorch would write at the end, whose ring has lost the first events.
func (l *lived) text(lost int) []byte {
	last := l.worlds[len(l.worlds)-1]
	var segments []any
	for _, at := range slices.Sorted(maps.Keys(last.segments)) {
		var blocks []any
		for b := at; b < at+segmentSize; b += 512 {
			block := map[string]any{"address": b, "size": 512, "requested_size": 0, "state": "inactive"}
			if size := last.blocks[b]; size > 0 {
				block["requested_size"], block["state"] = size, "active_allocated"
			} else if size := last.pending[b]; size > 0 {
				block["requested_size"], block["state"] = size, "active_pending_free"
			}
			blocks = append(blocks, block)
		}
		segments = append(segments, map[string]any{"device": 0, "address": at, "total_size": segmentSize, "stream": 0, "segment_type": "small", "blocks": blocks})
	}
	text, err := json.Marshal(map[string]any{"segments": segments, "device_traces": []any{l.events[lost:]}})
	if err != nil {
		panic(err)
	}
	return text
}

// found is what a snapshot holds, as a world.
func found(s *snapshot.Snapshot) world {
	w := world{make(map[uint64]uint64), make(map[uint64]uint64), make(map[uint64]uint64)}
	for _, seg := range s.Segments {
		w.segments[seg.Address] = uint64(seg.Size)
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			switch s.Blocks.State[row] {
			case snapshot.Live:
				w.blocks[s.Blocks.Address[row]] = uint64(s.Blocks.Requested[row])
			case snapshot.Pending:
				w.pending[s.Blocks.Address[row]] = uint64(s.Blocks.Requested[row])
			}
		}
	}
	return w
}

// TestEachMomentIsAsItWas: of a record whose oldest events are lost, what is shown of any moment is what was there.
func TestEachMomentIsAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := live(t)
		lost := rapid.IntRange(0, len(l.events)-1).Draw(t, "lost")
		text := l.text(lost)
		at := rapid.IntRange(lost+1, len(l.events)).Draw(t, "moment")
		decode := func(at snapshot.At) *snapshot.Snapshot {
			s, err := Decode("f", bytes.NewReader(text), int64(len(text)), Options{At: at})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := decode(snapshot.At{Kind: snapshot.AtTime, Time: time.Duration(at-lost-1) * time.Microsecond})
		if got, want := fmt.Sprint(found(s)), fmt.Sprint(l.worlds[at]); got != want {
			t.Fatalf("after event %d of %d, %d lost: %s, want %s: %s", at, len(l.events), lost, got, want, text)
		}
		var most uint64
		for _, w := range l.worlds[lost:] {
			most = max(most, w.live())
		}
		if w := found(decode(snapshot.At{Kind: snapshot.AtPeak})); w.live() != most {
			t.Fatalf("%d bytes at the peak, want %d", w.live(), most)
		}
	})
}

// TestAnOutOfMemoryErrorIsAMoment: what was refused and its stack, and what had been freed by the end.
func TestAnOutOfMemoryErrorIsAMoment(t *testing.T) {
	const text = `{"segments":[{"device":0,"address":0,"total_size":2048,"blocks":[{"address":0,"size":2048,"state":"inactive"}]}],"device_traces":[[
{"action":"alloc","addr":0,"size":1000,"time_us":10,"frames":[{"name":"forward","filename":"model.py","line":3}]},
{"action":"oom","addr":700,"size":5000,"device_free":700,"time_us":20,"frames":[{"name":"step","filename":"train.py","line":9}]},
{"action":"free_requested","addr":0,"size":1000,"time_us":30},{"action":"free_completed","addr":0,"size":1000,"time_us":31}]]}`
	decode := func(text string, at snapshot.At) (*snapshot.Snapshot, error) {
		return Decode("f", strings.NewReader(text), int64(len(text)), Options{At: at})
	}
	oom := snapshot.At{Kind: snapshot.AtOOM}
	s, err := decode(text, oom)
	if err != nil {
		t.Fatal(err)
	}
	m := s.Devices[0].Meters
	if m.Requested != 1000 || m.Allocated != 1024 || m.Reserved != 2048 {
		t.Errorf("%+v", m)
	}
	r := s.Moment.Refused
	if r == nil || r.Bytes != 5000 || r.Free != 700 || r.Times != 1 || s.Stacks.Frames(r.Stack)[0].Line != 9 {
		t.Errorf("%+v", r)
	}
	if sites := s.Sites(); len(sites) != 1 || s.Stacks.Frames(sites[0].Stack)[0].File != "model.py" {
		t.Errorf("%+v", sites)
	}
	if at, err := decode(text, snapshot.At{}); err != nil || at.Devices[0].Meters.Allocated != 0 || at.History.Refused == nil || at.History.Refused.Times != 1 || at.Moment != nil {
		t.Errorf("at the end: %+v, %v", at, err)
	}
	for name, c := range map[string]struct {
		text string
		at   snapshot.At
	}{
		"no error":  {strings.ReplaceAll(text, `"oom"`, `"snapshot"`), oom},
		"no record": {`{"segments":[]}`, snapshot.At{Kind: snapshot.AtPeak}},
		"no steps":  {text, snapshot.At{Kind: snapshot.AtStep, Step: 1}},
		"no times":  {strings.ReplaceAll(text, "time_us", "time"), snapshot.At{Kind: snapshot.AtTime}},
	} {
		var refused *snapshot.FormatError
		if s, err := decode(c.text, c.at); s != nil || !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestMappedPiecesOfASegmentComeAndGo: segments that expand are mapped and unmapped piece by piece.
func TestMappedPiecesOfASegmentComeAndGo(t *testing.T) {
	const text = `{"segments":[{"device":0,"address":0,"total_size":4096,"is_expandable":true,"blocks":[{"address":0,"size":4096,"state":"inactive"}]}],"device_traces":[[
{"action":"alloc","addr":0,"size":512,"time_us":1},
{"action":"segment_map","addr":2048,"size":2048,"time_us":2},
{"action":"segment_map","addr":4096,"size":2048,"time_us":3},
{"action":"alloc","addr":4096,"size":100,"time_us":4},
{"action":"free_completed","addr":4096,"size":100,"time_us":5},
{"action":"segment_unmap","addr":4096,"size":2048,"time_us":6},
{"action":"free_completed","addr":0,"size":512,"time_us":7}]]}`
	for after, want := range []string{"[0+2048]", "[0+4096]", "[0+6144]", "[0+6144]", "[0+6144]", "[0+4096]", "[0+4096]"} {
		s, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{At: snapshot.At{Kind: snapshot.AtTime, Time: time.Duration(after) * time.Microsecond}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, seg := range s.Segments {
			got = append(got, fmt.Sprintf("%d+%d", seg.Address, seg.Size))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d µs after the first event: %v, want %s", after, got, want)
		}
	}
}

// TestAFreeThatIsLostIsNoMemory: what is allocated where another block was shows that this is gone. The peak went to the end of a record in which a
// program had stopped recording for a while, and a block lost its size to what overlapped it.
func TestAFreeThatIsLostIsNoMemory(t *testing.T) {
	const text = `{"segments":[{"device":0,"address":0,"total_size":4096,"blocks":[{"address":0,"size":4096,"requested_size":4096,"state":"active_allocated"}]}],"device_traces":[[
{"action":"alloc","addr":0,"size":512,"time_us":1},{"action":"alloc","addr":512,"size":2048,"time_us":2},{"action":"free_completed","addr":512,"size":2048,"time_us":3},
{"action":"alloc","addr":0,"size":1024,"time_us":4},{"action":"alloc","addr":0,"size":1024,"time_us":5},{"action":"alloc","addr":1024,"size":1024,"time_us":6},
{"action":"alloc","addr":0,"size":4096,"time_us":7}]]}`
	decode := func(text string, at snapshot.At) *snapshot.Snapshot {
		s, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{At: at})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for after, want := range []snapshot.Bytes{512, 2560, 512, 1024, 1024, 2048, 4096} {
		s := decode(text, snapshot.At{Kind: snapshot.AtTime, Time: time.Duration(after) * time.Microsecond})
		if got := s.Devices[0].Meters.Requested; got != want {
			t.Errorf("after event %d: %d, want %d", after+1, got, want)
		}
	}
	if s := decode(strings.Replace(text, `,
{"action":"alloc","addr":0,"size":4096,"time_us":7}`, "", 1), snapshot.At{Kind: snapshot.AtPeak}); s.Moment.Event != 2 || s.Devices[0].Meters.Requested != 2560 {
		t.Errorf("the peak is %s at event %d", s.Devices[0].Meters.Requested, s.Moment.Event)
	}
}

// TestTheEndOfAStepIsAMoment: steps end where PyTorch's annotations say so.
func TestTheEndOfAStepIsAMoment(t *testing.T) {
	const text = `{"segments":[],"device_traces":[[
{"action":"alloc","addr":0,"size":100,"time_us":1},{"action":"alloc","addr":512,"size":200,"time_us":3},
{"action":"free_completed","addr":0,"size":100,"time_us":5},{"action":"free_completed","addr":512,"size":200,"time_us":7}]],
"external_annotations":[{"stage":"END","name":"Optimizer.step#SGD","time_us":4},{"stage":"END","name":"Optimizer.step#SGD","time_us":6},{"stage":"END","name":"Optimizer.step#SGD","time_us":9}]}`
	for step, want := range []snapshot.Bytes{1: 300, 2: 200, 3: 0} {
		if step == 0 {
			continue
		}
		s, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{At: snapshot.At{Kind: snapshot.AtStep, Step: int64(step)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Devices[0].Meters.Requested; got != want || s.Mark.Step != int64(step) {
			t.Errorf("step %d: %s at step %d, want %s", step, got, s.Mark.Step, want)
		}
	}
}

// TestEventsThatNoAllocatorHasAreNotFollowed: addresses that wrap and sizes of nothing that exists.
func TestEventsThatNoAllocatorHasAreNotFollowed(t *testing.T) {
	for _, event := range []string{
		`{"action":"alloc","addr":18446744073709551104,"size":512,"time_us":1}`,
		`{"action":"alloc","addr":4096,"size":18446744073709551104,"time_us":1}`,
		`{"action":"segment_free","addr":4096,"size":9223372036854775808,"time_us":1}`,
		`{"action":"free_completed","addr":18446744073709551104,"size":512,"time_us":1}`,
	} {
		text := `{"segments":[{"device":0,"address":18446744073709550592,"total_size":1024,"blocks":[{"address":18446744073709550592,"size":1024,"state":"active_allocated"}]}],"device_traces":[[` + event + `]]}`
		for _, at := range []snapshot.At{{Kind: snapshot.AtPeak}, {Kind: snapshot.AtTime}} {
			s, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{At: at})
			if err != nil {
				t.Fatal(err)
			}
			if m := s.Devices[0].Meters; m.Active != 0 || m.Reserved != 0 {
				t.Errorf("%s: %+v", event, m)
			}
		}
	}
}
