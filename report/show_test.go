package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// shown is the last snapshot of the pyramid run, with all that a snapshot can
// tell: a second device that a small block pins, a history, notes.
func shown() *snapshot.Snapshot {
	s := last(pyramid())
	s.Rank = 0
	s.Devices = append(s.Devices, snapshot.Device{
		Kind: snapshot.CUDA, Index: 1, Limit: snapshot.Unknown,
		Meters: snapshot.Meters{Reserved: 40 * snapshot.MiB, Driver: snapshot.Unknown},
	})
	s.Segments = append(s.Segments,
		snapshot.Segment{Device: 1, Address: 0x7f2000000000, Size: 20 * snapshot.MiB, FirstBlock: s.Blocks.Len()},
		snapshot.Segment{Device: 1, Address: 0x7f3000000000, Size: 20 * snapshot.MiB, FirstBlock: s.Blocks.Len() + 2, NumBlocks: 1})
	b := &s.Blocks
	add := func(segment int32, address uint64, state snapshot.State, size snapshot.Bytes, stack snapshot.StackID) {
		b.Segment, b.Address = append(b.Segment, segment), append(b.Address, address)
		b.State, b.Size, b.Requested = append(b.State, state), append(b.Size, size), append(b.Requested, size)
		b.Stack, b.BirthStep = append(b.Stack, stack), append(b.BirthStep, 30)
	}
	stack := s.Stacks.InternFrames(optimizerFrames)
	add(1, 0x7f2000000000, snapshot.Live, snapshot.MiB/2, stack)
	add(1, 0x7f2000080000, snapshot.Free, 20*snapshot.MiB-snapshot.MiB/2, snapshot.NoStack)
	add(2, 0x7f3000000000, snapshot.Free, 20*snapshot.MiB, snapshot.NoStack)
	s.Segments[1].NumBlocks = 2
	m := &s.Devices[1].Meters
	m.Requested, m.Allocated, m.Active = snapshot.MiB/2, snapshot.MiB/2, snapshot.MiB/2
	s.History = snapshot.History{Events: 22331, First: s.Mark.Time.Add(-time.Minute), Last: s.Mark.Time, LostFrees: 12}
	s.Notes = []string{"the ring buffer was full: older events are lost"}
	return s
}

// timed knows its blocks' births as times, not steps.
func timed() *snapshot.Snapshot {
	s := shown()
	s.Blocks.BirthTime = make([]int64, s.Blocks.Len())
	for i, step := range s.Blocks.BirthStep {
		if step != snapshot.NoStep {
			s.Blocks.BirthTime[i] = s.History.First.Add(time.Duration(step) * time.Second).UnixMicro()
		}
	}
	s.Blocks.BirthStep = nil
	return s
}

func TestShow(t *testing.T) {
	attackedSnapshot := func() *snapshot.Snapshot {
		s := attacked(t).Last
		s.Notes = []string{"\x1b[31mred"}
		return s
	}
	for _, c := range []struct {
		name, file string
		s          func() *snapshot.Snapshot
		options    TextOptions
	}{
		{"a snapshot at 80 columns", "show80.txt.golden", shown, TextOptions{Width: 80}},
		{"two sites on a wide page, the rest summed", "showtop.txt.golden", shown, TextOptions{Top: 2, Color: true}},
		{"births as times", "showtimed.txt.golden", timed, TextOptions{Width: 80}},
		{"hostile names are escaped", "showhostile.txt.golden", attackedSnapshot, TextOptions{Width: 80}},
		{"nothing live", "showempty.txt.golden", func() *snapshot.Snapshot { return last(empty()) }, TextOptions{Width: 80}},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden(t, c.file, rendered(t, func(b *bytes.Buffer) error { return Show(b, c.s(), c.options) }))
		})
	}
	private := shown()
	private.Segments[2].Private, private.Blocks.State[len(private.Blocks.State)-1] = "graph 7", snapshot.Live
	golden(t, "showprivate.txt.golden", rendered(t, func(b *bytes.Buffer) error { return Show(b, private, TextOptions{Width: 80}) }))
	golden(t, "show.json.golden", rendered(t, func(b *bytes.Buffer) error { return ShowJSON(b, shown(), TextOptions{Top: 2}) }))
	golden(t, "showempty.json.golden", rendered(t, func(b *bytes.Buffer) error { return ShowJSON(b, last(empty()), TextOptions{}) }))
}

func TestWaterfallSumsToTheWhole(t *testing.T) {
	s := shown()
	for i, d := range s.Devices {
		want := d.Meters.Driver
		if want == snapshot.Unknown {
			want = d.Meters.Reserved
		}
		var sum snapshot.Bytes
		for _, p := range shapesOf(s)[i].parts {
			sum += p.bytes
		}
		if sum != want {
			t.Errorf("%s: the parts sum to %d, want %d", deviceName(d), sum, want)
		}
	}
}

func TestFragments(t *testing.T) {
	s := shown()
	got := shapesOf(s)[1].fragments
	stack, _ := s.Stacks.Find(s.Stacks.Hash(s.Stacks.InternFrames(optimizerFrames)))
	want := fragments{
		freeBlocks: 2, free: 39*snapshot.MiB + snapshot.MiB/2, largestFree: 20 * snapshot.MiB,
		emptySegments: 1, empty: 20 * snapshot.MiB,
		pinnedSegments: 1, pinned: 20 * snapshot.MiB, pins: []pin{{stack, 1, 20 * snapshot.MiB}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(fragments{}, pin{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestAgesCountEveryLiveBlockOnce(t *testing.T) {
	for name, s := range map[string]*snapshot.Snapshot{"steps": shown(), "times": timed()} {
		a, ok := agesOf(s, nil)
		if !ok {
			t.Fatalf("%s: no ages", name)
		}
		sum := a.unknown
		for _, q := range a.quarters {
			sum = plus(sum, q)
		}
		var want diff.Tally
		for _, site := range s.Sites() {
			want = plus(want, diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested})
		}
		if sum != want {
			t.Errorf("%s: ages sum to %+v, want %+v", name, sum, want)
		}
	}
}

// As JSON, every heap profile had 0 bytes of cached and of free memory, which it does not tell.
func TestWhatTheFileDoesNotTellIsNotShownAsZero(t *testing.T) {
	table := snapshot.NewStacks()
	s := &snapshot.Snapshot{
		Stacks: table,
		Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown, Meters: snapshot.Meters{
			Requested: 1000, Allocated: 1256, Active: 1256, Reserved: 1256, Driver: snapshot.Unknown,
		}}},
		Segments: []snapshot.Segment{{Size: 1000, NumBlocks: 1}},
		Blocks: snapshot.Blocks{
			Segment: []int32{0}, Address: []uint64{0}, Size: []snapshot.Bytes{1000}, Requested: []snapshot.Bytes{1000},
			State: []snapshot.State{snapshot.Live}, Stack: []snapshot.StackID{table.InternFrames(optimizerFrames)}, Count: []int64{1},
		},
	}
	text := rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{}) })
	if !bytes.Contains(text, []byte("the allocator's other memory is not in the file")) {
		t.Errorf("%s", text)
	}
	json := rendered(t, func(b *bytes.Buffer) error { return ShowJSON(b, s, TextOptions{Top: 10}) })
	for _, untold := range []string{"cached", "fragment", "pending", "unsplit", "free between"} {
		if bytes.Contains(text, []byte(untold)) || bytes.Contains(json, []byte(untold)) {
			t.Errorf("%s, of which the file tells nothing:\n%s%s", untold, text, json)
		}
	}
}

// TestBlocksOfARecordWithoutTimesAreNotSaidToBeOlder: the trace may show that they were allocated.
func TestBlocksOfARecordWithoutTimesAreNotSaidToBeOlder(t *testing.T) {
	s := shown()
	s.Blocks.BirthStep, s.Blocks.BirthTime = nil, nil
	s.History = snapshot.History{Events: 1234}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{}) }))
	if strings.Contains(text, "older than that") || !strings.Contains(text, "history: 1,234 allocator events without times; the allocation time of 58 live blocks") {
		t.Error(text)
	}
	// Where the order is known, what is not in the trace is older.
	s.Blocks.BirthEvent = make([]int64, s.Blocks.Len())
	for i := range s.Blocks.BirthEvent {
		if i > 0 {
			s.Blocks.BirthEvent[i] = int64(i)
		}
	}
	text = string(rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{}) }))
	if !strings.Contains(text, " events 0 to 308 ") || !strings.Contains(text, "1,234 allocator events without times; 1 live block of ") || !strings.Contains(text, "is older than that") {
		t.Error(text)
	}
}

// TestMallocsFreeMemoryIsNotExplainedAsPyTorchsCache: a process was referred to what torch.cuda.empty_cache() returns.
func TestMallocsFreeMemoryIsNotExplainedAsPyTorchsCache(t *testing.T) {
	for kind, explained := range map[snapshot.DeviceKind]bool{snapshot.Process: false, snapshot.CUDA: true} {
		s := &snapshot.Snapshot{Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank, Mark: snapshot.Mark{Step: 8, Epoch: snapshot.NoStep}}
		s.Devices = []snapshot.Device{{Kind: kind, Limit: snapshot.Unknown, Meters: snapshot.Meters{
			Requested: 2 * snapshot.MiB, Allocated: 2 * snapshot.MiB, Active: 2 * snapshot.MiB, Reserved: 8 * snapshot.MiB, Driver: 20 * snapshot.MiB,
		}}}
		text := string(rendered(t, func(b *bytes.Buffer) error { return Show(b, s, TextOptions{Width: 200}) }))
		if strings.Contains(text, "memdiag explain cache-growth") != explained {
			t.Errorf("%s:\n%s", kind, text)
		}
	}
}

// What has no stack is not judged: with most bytes without one, the ages of the others are no answer.
func TestMemoryWithoutAStackIsNotSaidToLookHealthy(t *testing.T) {
	s := &snapshot.Snapshot{Stacks: snapshot.NewStacks()}
	id := s.Stacks.InternFrames(optimizerFrames)
	s.Blocks = snapshot.Blocks{
		Size: []snapshot.Bytes{3 * snapshot.MiB, snapshot.MiB}, Requested: []snapshot.Bytes{3 * snapshot.MiB, snapshot.MiB},
		State: []snapshot.State{snapshot.Live, snapshot.Live}, Stack: []snapshot.StackID{snapshot.NoStack, id},
	}
	young := diff.SiteAges{Pattern: diff.JustNow, Site: snapshot.Site{Stack: id, Bytes: snapshot.MiB}}
	if got := noSuspect(s, &diff.Ages{Sites: []diff.SiteAges{young}}); !strings.Contains(got, "most bytes (3.00\u00a0MiB) have no stack") {
		t.Error(got)
	}
	s.Blocks.Stack[0], young.Site.Bytes = id, 4*snapshot.MiB
	if got := noSuspect(s, &diff.Ages{Sites: []diff.SiteAges{young}}); got != nothing {
		t.Error(got)
	}
	young.Pattern = diff.Scattered
	if got := noSuspect(s, &diff.Ages{Sites: []diff.SiteAges{young}}); got != "undecided: most bytes are at call sites that allocated only a few times, or irregularly. "+oneOnly {
		t.Error(got)
	}
	young.Pattern = diff.Unborn
	if got := noSuspect(s, &diff.Ages{Sites: []diff.SiteAges{young}}); !strings.HasPrefix(got, "undecided: most bytes are older than the recording, or at") {
		t.Error(got)
	}
}
