package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// lengths are those of a container that a recorder follows from the fourth snapshot on.
type lengths struct {
	path  string
	each  snapshot.Bytes
	bound int
	items func(i int) int64 // at the i-th unit of time; 0 where it is not followed
}

// containerRun is a run with snapshots at these units of time, of 8 steps each, of which the process has so much at the i-th,
// and containers so many items.
func containerRun(at []int, process func(i int) snapshot.Bytes, containers ...lengths) *snapshot.Run {
	var run []*snapshot.Snapshot
	for _, i := range at {
		s := build(int64(8*i), block{"weights", snapshot.MiB, -1})
		held := 8*snapshot.MiB + process(i) + s.Devices[0].Meters.Allocated
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: held, Active: held, Reserved: held}})
		countEach(&s.Blocks)
		for number, c := range containers {
			n := c.items(i)
			if i < 3 || n == 0 {
				continue
			}
			addItems(s, number, c, n)
		}
		run = append(run, s)
	}
	return runOf(run...)
}

// countEach makes rows of blocks that were not counted rows of one block.
func countEach(b *snapshot.Blocks) {
	for len(b.Count) < len(b.Size) {
		b.Count = append(b.Count, 1)
	}
}

// addItems adds a container with so many items.
func addItems(s *snapshot.Snapshot, number int, c lengths, n int64) {
	b := &s.Blocks
	countEach(b)
	s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Items, Index: number, Limit: snapshot.Unknown})
	stack := s.Stacks.InternFrames([]snapshot.Frame{{Function: c.path}})
	s.Segments = append(s.Segments, snapshot.Segment{Device: len(s.Devices) - 1, FirstBlock: len(b.Size), NumBlocks: 1})
	b.Segment = append(b.Segment, int32(len(s.Segments)-1))
	b.Address, b.Size, b.Requested = append(b.Address, 0), append(b.Size, 0), append(b.Requested, 0)
	b.State, b.Stack, b.Count = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.Count, n)
	if b.BirthStep != nil {
		b.BirthStep = append(b.BirthStep, snapshot.NoStep)
	}
	kind := "list"
	if strings.HasPrefix(c.path, "io.") {
		kind = strings.TrimPrefix(c.path, "io.")
	}
	s.Holders = append(s.Holders, snapshot.Holder{Stack: stack, Path: c.path, Kind: kind, Items: int(n), Bound: c.bound, Each: c.each})
}

func TestAContainerThatGrowsWithTheProcessHoldsWhatLeaks(t *testing.T) {
	const kib = snapshot.KiB
	each := func(n int64) func(i int) int64 { return func(i int) int64 { return n * int64(i) } }
	steady := func(i int) snapshot.Bytes { return 48 * kib * snapshot.Bytes(i) } // 6 KiB a step
	late := func(i int) snapshot.Bytes { return 48 * kib * snapshot.Bytes(max(i, 14)) }
	still := func(int) snapshot.Bytes { return 0 }
	for name, c := range map[string]struct {
		process    func(i int) snapshot.Bytes
		containers []lengths
		want       string // the holder; "" for no leak
		unknown    bool   // the growth of the process stays without an explanation
	}{
		"figures that nobody closes":        {steady, []lengths{{"plt.figs", 0, 0, each(2)}}, "plt.figs", false},
		"items of as much":                  {steady, []lengths{{"main.rows", 5 * kib, 0, each(8)}}, "main.rows", false},
		"one of two is too light":           {steady, []lengths{{"main.losses", 32, 0, each(8)}, {"plt.figs", 0, 0, each(2)}}, "plt.figs", false},
		"of two the one of which is known":  {steady, []lengths{{"main.all", 0, 0, each(8)}, {"main.rows", 6 * kib, 0, each(8)}}, "main.rows", false},
		"items that take too little":        {steady, []lengths{{"main.losses", 32, 0, each(8)}}, "", true},
		"items that take far too much":      {steady, []lengths{{"main.seen", snapshot.MiB, 0, each(8)}}, "", true},
		"a container with a bound":          {steady, []lengths{{"main.replay", 6 * kib, 1000, each(8)}}, "", true},
		"a container that levels off":       {steady, []lengths{{"main.cache", 0, 0, func(i int) int64 { return int64(8 * min(i, 10)) }}}, "", true},
		"a container as long all along":     {steady, []lengths{{"main.cache", 0, 0, func(int) int64 { return 80 }}}, "", true},
		"a container of another rhythm":     {steady, []lengths{{"main.tags", 0, 0, func(i int) int64 { return int64(i * i) }}}, "", true},
		"a process that grows another way":  {late, []lengths{{"main.rows", 0, 0, each(8)}}, "", false},
		"a process that does not grow":      {still, []lengths{{"main.rows", 0, 0, each(8)}}, "", false},
		"a container that comes half-way":   {steady, []lengths{{"main.rows", 0, 0, func(i int) int64 { return max(0, int64(8*(i-9))) }}}, "main.rows", false},
		"a container that comes at the end": {steady, []lengths{{"main.rows", 0, 0, func(i int) int64 { return max(0, int64(8*(i-19))) }}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(containerRun(upTo(24), c.process, c.containers...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			holder := ""
			if r.Leaks() > 0 && r.Findings[0].Holder != nil {
				holder = r.Findings[0].Holder.Path
			}
			if holder != c.want || r.Leaks() > 1 {
				t.Errorf("%d leaks, held by %q, want %q: %+v", r.Leaks(), holder, c.want, r.Findings)
			}
			if (r.ProcessGrowth() != nil) != c.unknown {
				t.Errorf("unexplained: %+v", r.Unexplained())
			}
			if c.want == "" {
				return
			}
			f := r.Findings[0]
			if rate := f.Rate.Bytes.Value; f.Verdict != Leak || f.Evidence != Strong || rate < 6000 || rate > 6300 {
				t.Errorf("%s, %s, %.0f bytes a step", f.Verdict, f.Evidence, rate)
			}
			if f.Cause == nil || f.Cause.ID != "container-grows" {
				t.Errorf("got the cause %+v", f.Cause)
			}
		})
	}
}

// upTo are the first numbers from 0 on.
func upTo(n int) (at []int) {
	for i := range n {
		at = append(at, i)
	}
	return at
}

// TestAContainerThatGrowsWithASlightGrowthOfTheProcessIsInDoubt: arrays of 7.9 KiB a step in a dictionary took 1 % of the process in 300
// steps. That is too little to call it growth alone, and the gate passed two of three runs.
func TestAContainerThatGrowsWithASlightGrowthOfTheProcessIsInDoubt(t *testing.T) {
	const kib = snapshot.KiB
	each := func(i int) int64 { return int64(8 * i) }
	grows := func(unit snapshot.Bytes) func(int) snapshot.Bytes {
		return func(i int) snapshot.Bytes { return 150*snapshot.MiB + unit*snapshot.Bytes(i) }
	}
	for name, c := range map[string]struct {
		process   func(i int) snapshot.Bytes
		container lengths
		want      int // findings in doubt
	}{
		"items of as much":         {grows(60 * kib), lengths{"main.rows", 7 * kib, 0, each}, 1},
		"items of unknown size":    {grows(60 * kib), lengths{"main.rows", 0, 0, each}, 0},
		"items that take little":   {grows(60 * kib), lengths{"main.losses", 32, 0, each}, 0},
		"a container with a bound": {grows(60 * kib), lengths{"main.replay", 7 * kib, 1000, each}, 0},
		"less than a MiB":          {grows(20 * kib), lengths{"main.rows", 2 * kib, 0, each}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(containerRun(upTo(24), c.process, c.container), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() > 0 || r.Count(Inconclusive) != c.want || c.want > 0 && r.Findings[0].Holder.Path != c.container.path {
				t.Errorf("%d leaks, %d in doubt, want %d: %+v", r.Leaks(), r.Count(Inconclusive), c.want, r.Findings)
			}
		})
	}
}

func TestFewMarksOfAContainerAreWeakEvidence(t *testing.T) {
	steady := func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }
	from := func(first int) func(i int) int64 {
		return func(i int) int64 {
			if i < first {
				return 0
			}
			return int64(2 * i)
		}
	}
	for name, c := range map[string]struct {
		late  []int
		items func(i int) int64
		want  Evidence // "" for no leak
	}{
		"from the first half on":   {[]int{35, 45, 60}, from(19), Weak},
		"as long at two of them":   {[]int{35, 45, 60}, func(i int) int64 { return 2*min(from(19)(i), 45) + from(60)(i) }, ""},
		"from the second half on":  {[]int{21, 22, 23, 24}, from(20), ""},
		"three marks are too few":  {[]int{35, 60}, from(19), ""},
		"as many as a trend needs": {[]int{25, 30, 35, 40, 45, 50, 55, 60}, from(19), Strong},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(containerRun(append(upTo(20), c.late...), steady, lengths{"plt.figs", 0, 0, c.items}), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			var got Evidence
			if r.Leaks() > 0 && !r.Findings[0].OfProcess() {
				got = r.Findings[0].Evidence
			}
			if got != c.want {
				t.Errorf("got %q, want %q: %+v", got, c.want, r.Findings)
			}
		})
	}
}

// From some mark on lines of Python's heap are known, which has grown all along: no line leaks, and the rest
// of the process is level from there on.
func TestLinesToldLateExplainNothingWhileNoneLeaks(t *testing.T) {
	steady := func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }
	run := containerRun(upTo(24), steady, lengths{"plt.figs", 0, 0, func(i int) int64 { return int64(2 * i) }})
	for i, s := range run.Snapshots {
		if i >= 12 {
			told := 48 * snapshot.KiB * snapshot.Bytes(i-11)
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: told}})
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Leaks() != 1 || r.Findings[0].Holder.Path != "plt.figs" {
		t.Fatalf("%d leaks: %+v", r.Leaks(), r.Findings)
	}
	if rate := r.Findings[0].Rate.Bytes.Value; rate < 6000 || rate > 6300 {
		t.Errorf("%.0f bytes a step", rate)
	}
}

// tell adds lines of Python's heap: the one at draw.py:9 has so much at the i-th snapshot.
func tell(run *snapshot.Run, held func(i int) snapshot.Bytes) {
	for i, s := range run.Snapshots {
		if i < 3 {
			continue
		}
		size := held(i)
		b := &s.Blocks
		countEach(b)
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Requested: size, Allocated: size, Active: size, Reserved: size}})
		s.Segments = append(s.Segments, snapshot.Segment{Device: len(s.Devices) - 1, Size: size, FirstBlock: len(b.Size), NumBlocks: 1})
		b.Segment, b.Address = append(b.Segment, int32(len(s.Segments)-1)), append(b.Address, 0)
		b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
		b.State, b.Stack, b.Count = append(b.State, snapshot.Live), append(b.Stack, s.Stacks.InternFrames(drawing)), append(b.Count, int64(10*i))
		if b.BirthStep != nil {
			b.BirthStep = append(b.BirthStep, snapshot.NoStep)
		}
	}
}

var drawing = []snapshot.Frame{{Function: "subplots", File: "/site-packages/plt.py", Line: 3}, {Function: "draw", File: "draw.py", Line: 9}}

func TestALineHasTheHolderThatItFills(t *testing.T) {
	steady := func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }
	each := func(i int) int64 { return int64(2 * i) }
	for name, c := range map[string]struct {
		line, each int
		items      func(i int) int64
		want       string
	}{
		"the line that leaks":            {9, 0, each, "plt.figs"},
		"items of as much":               {9, 24 << 10, each, "plt.figs"},
		"another line":                   {8, 0, each, ""},
		"items that take too little":     {9, 600, each, ""},
		"another rhythm":                 {9, 0, func(i int) int64 { return int64(i * i) }, ""},
		"a container that is emptied":    {9, 0, func(i int) int64 { return int64(1 + i%5) }, ""},
		"a container that stays so long": {9, 0, func(int) int64 { return 8 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := containerRun(upTo(24), steady, lengths{"plt.figs", snapshot.Bytes(c.each), 0, c.items})
			tell(run, steady)
			for _, s := range run.Snapshots {
				for i := range s.Holders {
					s.Holders[i].From = s.Stacks.InternFrames([]snapshot.Frame{{Function: "draw", File: "draw.py", Line: c.line}})
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != 1 || r.Findings[0].Headline != 1 {
				t.Fatalf("%d leaks: %+v", r.Leaks(), r.Findings)
			}
			holder := ""
			if f := r.Findings[0]; f.Holder != nil {
				holder = f.Holder.Path
			}
			if holder != c.want {
				t.Errorf("held by %q, want %q", holder, c.want)
			}
			if cause := r.Findings[0].Cause; c.want != "" && (cause == nil || cause.ID != "container-grows") {
				t.Errorf("got the cause %+v", cause)
			}
		})
	}
}

// TestALeakWithoutAHolderNamesNativeMemoryThatGrowsWithIt: torch.jit.trace in a loop makes Python objects that C++ holds, and
// twice as much in C++.
func TestALeakWithoutAHolderNamesNativeMemoryThatGrowsWithIt(t *testing.T) {
	line := func(i int) snapshot.Bytes { return 16 * snapshot.KiB * snapshot.Bytes(i) }
	for name, c := range map[string]struct {
		process func(i int) snapshot.Bytes
		holder  string
		want    bool
	}{
		"in proportion":        {func(i int) snapshot.Bytes { return 3 * line(i) }, "", true},
		"from a later step on": {func(i int) snapshot.Bytes { return line(i) + 8*line(max(0, i-14)) }, "", false},
		"not at all":           {line, "", false},
		"with a holder":        {func(i int) snapshot.Bytes { return 3 * line(i) }, "plt.figs", false},
	} {
		t.Run(name, func(t *testing.T) {
			run := containerRun(upTo(24), c.process)
			tell(run, line)
			if c.holder != "" {
				for _, s := range run.Snapshots {
					s.Holders = append(s.Holders, snapshot.Holder{Stack: s.Blocks.Stack[len(s.Blocks.Stack)-1], Path: c.holder, Kind: "list", Items: 24})
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != 1 || r.Findings[0].Rows[0].Device.Kind != snapshot.PythonHeap {
				t.Fatalf("%d leaks: %+v", r.Leaks(), r.Findings)
			}
			if got := strings.Contains(strings.Join(r.Findings[0].Reasons, "; "), "native code"); got != c.want {
				t.Errorf("%q", r.Findings[0].Reasons)
			}
		})
	}
}

// TestALeakOfItemsTakesInTheLinesThatMakeThem: a program that starts a thread a step, which never ends, was five findings; the leak had
// no line.
func TestALeakOfItemsTakesInTheLinesThatMakeThem(t *testing.T) {
	for name, c := range map[string]struct {
		made     func(i int) int // objects of a line, at the i-th unit of time
		findings int
		line     bool
	}{
		"a line that makes four objects an item":  {func(i int) int { return 32 * (i - 19) }, 1, true},
		"a line of another rhythm stays in doubt": {func(i int) int { return 8 * (i - 19) * (i - 19) * (i - 19) }, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := containerRun(upTo(24), func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }, lengths{"threading._active", 0, 0, func(i int) int64 { return int64(8 * i) }})
			for i, s := range run.Snapshots {
				addHeap(s, "start", max(0, c.made(i)))
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if r.Leaks() != 1 || len(r.Findings) != c.findings || f.Holder == nil || f.Holder.Path != "threading._active" || (f.Headline >= 0) != c.line {
				t.Errorf("%d leaks, %d findings; the first is held by %+v, line %v; %+v", r.Leaks(), len(r.Findings), f.Holder, f.Headline >= 0, r.Findings[len(r.Findings)-1])
			}
			if rate := f.Rate.Bytes.Value; rate < 6000 || rate > 6300 {
				t.Errorf("%.0f bytes a step: what the line makes is a part of the process's growth", rate)
			}
		})
	}
}

// TestAContainerThatBecomesLongerWithLinesHoldsThem: of a program that starts a thread a step, lines of the program's and of threading's
// were four leaks without a holder.
func TestAContainerThatBecomesLongerWithLinesHoldsThem(t *testing.T) {
	still := func(int) snapshot.Bytes { return 0 }
	each := func(n int64) func(i int) int64 { return func(i int) int64 { return n * int64(i) } }
	for name, c := range map[string]struct {
		container lengths
		leaks     int
		cause     string
	}{
		"threads that never end":                               {lengths{"threading._active", 0, 0, each(8)}, 1, "threads-not-ended"},
		"a list of graphs, which have many objects each":       {lengths{"Search.undo", 0, 0, each(1)}, 1, "container-grows"},
		"a list of numbers":                                    {lengths{"main.losses", 32, 0, each(8)}, 2, ""},
		"a buffer that has too little for what the lines take": {lengths{"io.StringIO", 0, 0, each(9000)}, 2, ""},
		"a buffer of as much":                                  {lengths{"io.StringIO", 0, 0, each(25_000)}, 1, "container-grows"},
		"a list of more than the lines make":                   {lengths{"main.rows", 0, 0, each(100)}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := containerRun(upTo(24), still, c.container)
			for i, s := range run.Snapshots {
				addHeap(s, "start", 32*i)
				addHeap(s, "run", 16*i)
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if held := f.Holder != nil && f.Holder.Path == c.container.path; r.Leaks() != c.leaks || held != (c.leaks == 1) || f.Rows[0].Frames[0].Function != "start" {
				t.Errorf("%d leaks, the first of %s, held by %+v", r.Leaks(), f.Rows[0].Frames[0].Function, f.Holder)
			}
			if cause := f.Cause; c.leaks == 1 && (len(f.Rows) != 2 || cause == nil || cause.ID != c.cause) {
				t.Errorf("%d lines, cause %+v", len(f.Rows), cause)
			}
		})
	}
}

// addHeap adds Python's heap with so many objects of a line, without their births, as windows tell of them.
func addHeap(s *snapshot.Snapshot, line string, n int) {
	addStack(s, n, snapshot.Bytes(1500*n), snapshot.Frame{Function: line, File: line + ".py", Line: 8})
}

// addStack does so of a stack, with what they take.
func addStack(s *snapshot.Snapshot, n int, size snapshot.Bytes, stack ...snapshot.Frame) {
	b := &s.Blocks
	countEach(b)
	at := slices.IndexFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.PythonHeap })
	if at < 0 {
		at, s.Devices = len(s.Devices), append(s.Devices, snapshot.Device{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown})
	}
	s.Devices[at].Meters.Allocated += size
	if n == 0 {
		return
	}
	s.Segments = append(s.Segments, snapshot.Segment{Device: at, FirstBlock: len(b.Size), NumBlocks: 1})
	b.Segment = append(b.Segment, int32(len(s.Segments)-1))
	b.Address, b.Size, b.Requested = append(b.Address, 0), append(b.Size, size), append(b.Requested, size)
	b.State, b.Stack, b.Count = append(b.State, snapshot.Live), append(b.Stack, s.Stacks.InternFrames(stack)), append(b.Count, int64(n))
	b.BirthStep = append(b.BirthStep, snapshot.NoStep)
}

// TestALineThatIsGivenItsHolderLateJoinsItsOtherLines: a list of tasks held two lines, of which a walk found one.
func TestALineThatIsGivenItsHolderLateJoinsItsOtherLines(t *testing.T) {
	run := containerRun(upTo(24), func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }, lengths{"background", 0, 0, func(i int) int64 { return int64(8 * i) }})
	for i, s := range run.Snapshots {
		addHeap(s, "start", 32*i)
		if i > 0 {
			s.Holders = append(s.Holders, snapshot.Holder{Stack: s.Blocks.Stack[len(s.Blocks.Stack)-1], Path: "background", Kind: "list", Items: 8 * i})
		}
		addHeap(s, "body", 8*i)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Findings[0].Holder; r.Leaks() != 1 || len(r.Findings[0].Rows) != 2 || h == nil || h.Path != "background" {
		t.Errorf("%d leaks, the first of %d stacks and held by %+v", r.Leaks(), len(r.Findings[0].Rows), h)
	}
}

// TestAContainerIsFilledAtTheLineOfNativeMemory: a buffer that is enlarged in place has no other line.
func TestAContainerIsFilledAtTheLineOfNativeMemory(t *testing.T) {
	run := containerRun(upTo(24), func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) }, lengths{"main.buf", 0, 0, func(i int) int64 { return 8 * int64(i) }})
	last := run.Snapshots[len(run.Snapshots)-1]
	last.Native = []snapshot.StackID{last.Stacks.InternFrames([]snapshot.Frame{{Function: "handle", File: "serve.py", Line: 4}})}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak || f.Holder == nil || f.Holder.Path != "main.buf" || f.Headline != 0 || f.Rows[0].Frames[0].Line != 4 {
		t.Errorf("%+v", f)
	}
}
