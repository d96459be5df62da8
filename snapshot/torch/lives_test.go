package torch

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

// liveAfter adds up the lives that go on after an event.
func liveAfter(line *snapshot.Timeline, event int64) (sum uint64) {
	for _, l := range line.Lives {
		if l.Born <= event && (l.Died == 0 || l.Died > event) {
			sum += uint64(l.Size)
		}
	}
	return sum
}

func timelineOf(t interface{ Fatal(...any) }, text []byte) *snapshot.Timeline {
	s, err := Decode("f", bytes.NewReader(text), int64(len(text)), Options{Timeline: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Timelines) != 1 {
		t.Fatal("no timeline")
	}
	return s.Timelines[0]
}

// TestATimelineTellsWhatLivedAfterEachEvent: of a record whose oldest events are lost, the lives and the figures of each bin add up to
// what was there.
func TestATimelineTellsWhatLivedAfterEachEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := live(t)
		lost := rapid.IntRange(0, len(l.events)-1).Draw(t, "lost")
		line := timelineOf(t, l.text(lost))
		if line.Events != int64(len(l.events)-lost) || line.Folded != 0 || line.BinEvents != 1 {
			t.Fatalf("%+v", line)
		}
		most, at := l.worlds[lost].live(), 0
		for event, w := range l.worlds[lost:] {
			if got := liveAfter(line, int64(event)); got != w.live() {
				t.Fatalf("after event %d: %d bytes, want %d", event, got, w.live())
			}
			if w.live() > most {
				most, at = w.live(), event
			}
			if event == 0 {
				continue
			}
			before, bin := l.worlds[lost+event-1], line.Bins[event-1]
			if want := max(before.live(), w.live()); uint64(bin.Live) != want {
				t.Fatalf("in event %d: %s, want %d", event, bin.Live, want)
			}
			if want := segmentSize * max(len(before.segments), len(w.segments)); int(bin.Reserved) != want {
				t.Fatalf("in event %d: reserved %s, want %d", event, bin.Reserved, want)
			}
		}
		if uint64(line.Peak) != most || line.PeakEvent != int64(at) {
			t.Fatalf("peak of %s at %d, want %d at %d", line.Peak, line.PeakEvent, most, at)
		}
	})
}

// TestALongRecordKeepsItsLargestLives: the rest is in the figures of the bins, so that nothing is lost.
func TestALongRecordKeepsItsLargestLives(t *testing.T) {
	const events, large, largeSize = 3 * mostLives * 2, 64, 1 << 20
	random := rand.New(rand.NewPCG(1, 2))
	l := newLives()
	event := func(action keyword, address, size uint64) {
		var o object
		o.put(enAction, uint64(action))
		o.put(enAddr, address)
		o.put(enSize, size)
		l.add(l.events+1, &o)
	}
	live := make([]uint64, 0, events)
	sizes := make(map[uint64]uint64)
	now := uint64(0)
	for len(live) < events {
		address := uint64(random.IntN(4096)) << 9
		if len(live)%(events/large) == 0 {
			address = 1<<40 + uint64(len(live))<<9 // it stays
			sizes[address] = largeSize
		} else if size, open := sizes[address]; open {
			event(kwFreeCompleted, address, size)
			now -= size
			delete(sizes, address)
			live = append(live, now)
			continue
		} else {
			sizes[address] = 1 + uint64(random.IntN(4096))
		}
		event(kwAlloc, address, sizes[address])
		now += sizes[address]
		live = append(live, now)
	}
	line := l.timeline(&snapshot.Snapshot{Devices: make([]snapshot.Device, 1)}, 0, nil, newStackTable(&symbols{lists: [][]uint32{nil}}, snapshot.NewStacks()))
	if len(line.Lives) > mostLives || line.Folded == 0 || len(line.Bins) > mostBins {
		t.Fatalf("%d lives, %d folded, %d bins", len(line.Lives), line.Folded, len(line.Bins))
	}
	if n := len(slices.DeleteFunc(slices.Clone(line.Lives), func(l snapshot.Life) bool { return l.Size < largeSize })); n != large {
		t.Errorf("%d of %d large lives are told", n, large)
	}
	if uint64(line.Peak) != slices.Max(live) {
		t.Errorf("peak of %s, want %d", line.Peak, slices.Max(live))
	}
	for i, bin := range line.Bins {
		from, to := int64(i)*line.BinEvents, min(int64(i+1)*line.BinEvents, events)
		if want := slices.Max(live[max(from-1, 0):to]); uint64(bin.Live) != want {
			t.Fatalf("bin %d: %s, want %d", i, bin.Live, want)
		}
		if i%100 == 0 {
			if got := liveAfter(line, to) + uint64(bin.Folded); got != live[to-1] {
				t.Fatalf("after event %d: %d bytes, want %d", to, got, live[to-1])
			}
		}
	}
}

// TestATimelineTellsFailuresAndSteps: where a request failed, and after which event each step ended.
func TestATimelineTellsFailuresAndSteps(t *testing.T) {
	const text = `{"segments":[],"device_traces":[[
{"action":"alloc","addr":0,"size":100,"time_us":1,"frames":[{"name":"forward","filename":"model.py","line":3}]},{"action":"oom","addr":0,"size":500,"time_us":3},
{"action":"free_completed","addr":0,"size":100,"time_us":5},{"action":"alloc","addr":512,"size":200,"time_us":7}]],
"external_annotations":[{"stage":"END","name":"Optimizer.step#SGD","time_us":4},{"stage":"END","name":"Optimizer.step#SGD","time_us":9}]}`
	s, err := Decode("f", strings.NewReader(text), int64(len(text)), Options{Timeline: true})
	if err != nil {
		t.Fatal(err)
	}
	line := s.Timelines[0]
	if !slices.Equal(line.Refused, []snapshot.RefusedAt{{Event: 2, Bytes: 500}}) || !slices.Equal(line.Steps, []int64{2, 4}) {
		t.Errorf("%+v", line)
	}
	if frames := s.Stacks.Frames(line.Lives[0].Stack); len(frames) != 1 || frames[0].File != "model.py" {
		t.Errorf("%+v", frames)
	}
}
