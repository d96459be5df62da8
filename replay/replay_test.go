package replay_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/replay"
	"github.com/memdiag/memdiag/snapshot"
)

const mib = 1 << 20

// tape is a record in the making, of a device that begins empty.
type tape struct {
	record snapshot.Record
	next   uint64
}

func newTape() *tape { return &tape{record: snapshot.Record{Streams: []uint64{0}}, next: 1 << 40} }

func (t *tape) event(kind snapshot.EventKind, address uint64, size int64) {
	t.record.Events = append(t.record.Events, snapshot.NewEvent(kind, address, snapshot.Bytes(size), 0))
}

// alloc takes a block at an address that no other has; the model chooses its own.
func (t *tape) alloc(size int64) uint64 {
	t.next += 1 << 32
	t.event(snapshot.EventAlloc, t.next, size)
	return t.next
}

func (t *tape) free(address uint64) {
	t.event(snapshot.EventFreeRequested, address, 0)
	t.event(snapshot.EventFreeCompleted, address, 0)
}

func (t *tape) player(tb testing.TB) *replay.Player {
	tb.Helper()
	empty := &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Records: []*snapshot.Record{&t.record}}
	p, err := replay.New(empty, empty, -1)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func play(tb testing.TB, p *replay.Player, text string) replay.Result {
	tb.Helper()
	s, err := replay.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Play([]replay.Settings{s})[0]
}

// pytorch#123548: blocks of 91 and 45.5 MiB, then one of 2 MiB that stays, then the two are freed. With both settings reserved memory
// grows by some 138 MiB a cycle, with each alone it stays below 500 MiB.
func TestMaxSplitWithExpandableSegmentsGrowsInEachCycle(t *testing.T) {
	tape := newTape()
	const cycles = 100
	for range cycles {
		a, b := tape.alloc(91*mib), tape.alloc(91*mib/2)
		tape.alloc(2 * mib)
		tape.free(a)
		tape.free(b)
	}
	p := tape.player(t)
	both := play(t, p, "max_split_size_mb:128,expandable_segments:True")
	if each := both.Reserved / cycles; each < 130*mib || each > 145*mib {
		t.Errorf("both settings: %v a cycle, want some 138 MiB", each)
	}
	if len(both.Unmet) > 0 { // freed blocks are joined to one that is above it, which no request is
		t.Errorf("both settings are not met: %q", both.Unmet)
	}
	for _, text := range []string{"", "max_split_size_mb:128", "expandable_segments:True"} {
		if r := play(t, p, text); r.Reserved > 500*mib {
			t.Errorf("%q reserves %v, want less than 500 MiB", text, r.Reserved)
		}
	}
}

func TestFragmentationIsWhatExpandableSegmentsAvoid(t *testing.T) {
	tape := newTape()
	for i := range 20 { // each step's tensors are larger than the holes that the last one left
		block := tape.alloc(int64(30+4*i) * mib)
		tape.alloc(3 * mib)
		tape.free(block)
	}
	p := tape.player(t)
	usual, expandable := play(t, p, ""), play(t, p, "expandable_segments:True")
	if 2*expandable.Reserved > usual.Reserved {
		t.Errorf("expandable segments reserve %v of %v", expandable.Reserved, usual.Reserved)
	}
	if usual.Stranded == 0 || usual.Needed > usual.Reserved || usual.Live > usual.Reserved {
		t.Errorf("figures do not fit together: %+v", usual)
	}
}

// A request that failed tells the limit; below it the cache is emptied before a request fails.
func TestALimitEmptiesTheCacheFirst(t *testing.T) {
	tape := newTape()
	a := tape.alloc(60 * mib)
	tape.free(a)
	tape.alloc(80 * mib) // not into the block of 60
	p := tape.player(t)
	if p.Limit != 0 {
		t.Errorf("limit %v, though nothing failed", p.Limit)
	}
	p.Limit = 100 * mib
	if r := play(t, p, ""); r.Retries != 1 || r.Failed != 0 || r.Needed != 80*mib {
		t.Errorf("with 100 MiB: %+v", r)
	}
	p.Limit = 70 * mib
	if r := play(t, p, ""); r.Failed != 1 {
		t.Errorf("with 70 MiB: %+v", r)
	}
}

func TestTheRecordTellsTheLimit(t *testing.T) {
	tape := newTape()
	tape.event(snapshot.EventSegmentAlloc, 1<<30, 60*mib)
	a := tape.alloc(60 * mib)
	tape.event(snapshot.EventOOM, 30*mib, 50*mib) // 30 MiB were left
	tape.free(a)
	if p := tape.player(t); p.Limit != 90*mib {
		t.Errorf("limit %v, want 90 MiB", p.Limit)
	}
}

// The same, by the allocator itself: it had no room for both.
func TestTheAllocatorEmptiesTheCache(t *testing.T) {
	tape := newTape()
	tape.event(snapshot.EventSegmentAlloc, 1<<30, 200*mib)
	tape.free(tape.alloc(200 * mib))
	tape.event(snapshot.EventSegmentFree, 1<<30, 200*mib)
	tape.record.Retries = []int{len(tape.record.Events)}
	tape.event(snapshot.EventSegmentAlloc, 1<<31, 210*mib)
	tape.alloc(210 * mib)
	p := tape.player(t)
	if r := play(t, p, ""); p.Limit != 210*mib || r.Retries != 1 || r.Failed != 0 {
		t.Errorf("limit %v: %+v", p.Limit, r)
	}
}

func TestTheProgramEmptiesTheCache(t *testing.T) {
	tape := newTape()
	tape.event(snapshot.EventSegmentAlloc, 1<<30, 200*mib)
	a := tape.alloc(200 * mib)
	tape.free(a)
	tape.event(snapshot.EventSegmentFree, 1<<30, 200*mib)
	tape.event(snapshot.EventSegmentAlloc, 1<<31, 20*mib)
	tape.alloc(4 * mib)
	p := tape.player(t)
	if p.Limit != 0 {
		t.Errorf("limit %v: both had room", p.Limit)
	}
	if r := play(t, p, ""); r.Calls != 3 || r.Retries != 0 {
		t.Errorf("%+v, want two segments taken and one given back", r)
	}
}

// A private pool and another stream have no free block in common with the rest.
func TestStreamsShareNoBlocks(t *testing.T) {
	tape := newTape()
	tape.record.Streams = []uint64{0, 7}
	a := tape.alloc(12 * mib)
	tape.free(a)
	tape.record.Events = append(tape.record.Events, snapshot.NewEvent(snapshot.EventAlloc, 1<<33, 12*mib, 1))
	if r := play(t, tape.player(t), ""); r.Reserved != 24*mib {
		t.Errorf("reserved %v, want 24 MiB", r.Reserved)
	}
}

func TestGarbageCollectionKeepsBelowTheThreshold(t *testing.T) {
	tape := newTape()
	for i := range 6 { // each is too large for what is cached
		tape.free(tape.alloc(int64(20+10*i) * mib))
	}
	p := tape.player(t)
	p.Limit = 1000 * mib
	usual := play(t, p, "")
	if r := play(t, p, "garbage_collection_threshold:0.1"); r.Reserved >= usual.Reserved || r.Retries != 0 {
		t.Errorf("%+v, without %+v", r, usual)
	}
}

func TestARecordWithoutAllocationsIsRefused(t *testing.T) {
	tape := newTape()
	tape.free(1 << 40)
	empty := &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Records: []*snapshot.Record{&tape.record}}
	if _, err := replay.New(empty, empty, -1); err == nil {
		t.Error("no error")
	}
	if _, err := replay.New(empty, empty, 3); err == nil {
		t.Error("no error for a device without a record")
	}
}

// Whatever a damaged file says: segments that overlap, blocks twice, sizes beyond all devices.
func TestDamagedRecordsArePlayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64Range(1, 64).Draw(t, "MiB") << 20 })
		size := rapid.SampledFrom([]int64{0, 1, 512, 1 << 20, 3 << 20, 1 << 30, 1 << 45, int64(snapshot.MaxEventBytes)})
		s := &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}}
		for range rapid.IntRange(0, 4).Draw(t, "segments") {
			from := address.Draw(t, "from")
			n := rapid.IntRange(0, 3).Draw(t, "blocks")
			s.Segments = append(s.Segments, snapshot.Segment{Address: from, Size: snapshot.Bytes(size.Draw(t, "size")), Expandable: rapid.Bool().Draw(t, "expandable"), FirstBlock: len(s.Blocks.Size), NumBlocks: n})
			for range n {
				s.Blocks.Address = append(s.Blocks.Address, address.Draw(t, "address"))
				s.Blocks.Size = append(s.Blocks.Size, snapshot.Bytes(size.Draw(t, "size")))
				s.Blocks.Requested = append(s.Blocks.Requested, snapshot.Bytes(size.Draw(t, "requested")))
				s.Blocks.State = append(s.Blocks.State, rapid.SampledFrom([]snapshot.State{snapshot.Free, snapshot.Live, snapshot.Pending}).Draw(t, "state"))
			}
		}
		tape := newTape()
		tape.event(snapshot.EventAlloc, 1<<20, 5)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			tape.event(snapshot.EventKind(rapid.IntRange(0, 8).Draw(t, "kind")), address.Draw(t, "address"), size.Draw(t, "size"))
		}
		s.Records = []*snapshot.Record{&tape.record}
		p, err := replay.New(s, s, -1)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "expandable_segments:True", "max_split_size_mb:32,garbage_collection_threshold:0.5", "roundup_power2_divisions:8"} {
			settings, err := replay.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Check(settings)
			if r := p.Play([]replay.Settings{settings})[0]; r.Reserved < 0 || r.Needed < 0 || r.Stranded < 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestBoundsThatNothingMeetsAreSaid(t *testing.T) {
	tape := newTape()
	for range 10 {
		tape.free(tape.alloc(100 * mib))
		tape.alloc(30 * mib)
	}
	p := tape.player(t)
	for _, c := range []struct {
		conf  string
		limit snapshot.Bytes
		want  []string
	}{
		{"max_split_size_mb:64", 0, nil},
		{"max_split_size_mb:512", 0, []string{"max_split_size_mb: it made no difference to any block"}},
		{"garbage_collection_threshold:0.8", 0, []string{"garbage_collection_threshold: it is a share of a limit, and none is known (--limit)"}},
		{"garbage_collection_threshold:0.8", 1 << 40, []string{"garbage_collection_threshold: reserved memory stayed below 0.8 of the limit"}},
		{"garbage_collection_threshold:0.5", 300 * mib, nil},
	} {
		p.Limit = c.limit
		if got := play(t, p, c.conf).Unmet; !slices.Equal(got, c.want) {
			t.Errorf("%s within %v: %q, want %q", c.conf, c.limit, got, c.want)
		}
	}
}

func TestFreesThatTheRecordLacksAreSaid(t *testing.T) {
	tape := newTape()
	at := tape.alloc(30 * mib)
	tape.event(snapshot.EventAlloc, at, 30*mib) // given out again
	tape.free(at)
	tape.free(at) // of nothing
	why := strings.Join(tape.player(t).Check(replay.Settings{}).Why, "; ")
	for _, want := range []string{"whose frees the record lacks: 1;", "frees of blocks that are not known: 1;"} {
		if !strings.Contains(why, want) {
			t.Errorf("no %q in %q", want, why)
		}
	}
}
