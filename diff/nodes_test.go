package diff

import (
	"cmp"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// graphRun is a run of which each snapshot from the fifth on knows of autograd's nodes, with so many at the i-th; the
// process has so many halves of a MiB at first, and grows by 6 KiB a step.
func graphRun(base int, nodes func(i int) int64, blocks ...block) *snapshot.Run {
	const mib = snapshot.MiB
	var run []*snapshot.Snapshot
	for i := range 24 {
		step := int64(8 * i)
		list := []block{{"weights", mib, -1}}
		for _, b := range blocks {
			list = append(list, grown(b.stack, i+1, b.size, 0, 8)...)
		}
		s := build(step, list...)
		held := mib/2*snapshot.Bytes(base) + 6*snapshot.KiB*snapshot.Bytes(step) + s.Devices[0].Meters.Allocated
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: held, Active: held, Reserved: held}})
		if n := nodes(i); n > 0 {
			addNodes(s, n)
		}
		run = append(run, s)
	}
	return runOf(run...)
}

// addNodes adds a graph of so many nodes, which total keeps.
func addNodes(s *snapshot.Snapshot, n int64) {
	s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Graph, Limit: snapshot.Unknown})
	stack := s.Stacks.Intern([]snapshot.FrameID{s.Stacks.Frame(snapshot.Frame{Function: "train", File: "train.py", Line: 9})})
	b := &s.Blocks
	s.Segments = append(s.Segments, snapshot.Segment{Device: len(s.Devices) - 1, FirstBlock: len(b.Size), NumBlocks: 1})
	countEach(b)
	b.Segment = append(b.Segment, int32(len(s.Segments)-1))
	b.Address, b.Size, b.Requested = append(b.Address, 0), append(b.Size, 0), append(b.Requested, 0)
	b.State, b.Stack, b.Count = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.Count, n)
	if b.BirthStep != nil {
		b.BirthStep = append(b.BirthStep, snapshot.NoStep)
	}
	s.Holders = append(s.Holders, snapshot.Holder{Stack: stack, Path: "main.total", Kind: snapshot.Nodes, Items: int(n)})
}

func TestNodesThatBecomeMoreAreALeakOfWhatTheProcessGrowsBy(t *testing.T) {
	known := func(n func(i int) int64) func(i int) int64 {
		return func(i int) int64 {
			if i < 5 {
				return 0
			}
			return n(i)
		}
	}
	perStep := known(func(i int) int64 { return int64(300 + 8*i) })
	for name, c := range map[string]struct {
		nodes  func(i int) int64
		blocks []block
		want   string // verdict, device and holder of the first finding
		rate   float64
		doubt  bool // the growth of the process stays without an explanation
		base   int
	}{
		"a sum of losses":               {perStep, nil, "leak graph main.total", 6 << 10, false, 100},
		"a sum begun anew now and then": {known(func(i int) int64 { return int64(10 + i%6) }), nil, "bounded graph main.total", 0, true, 100},
		"as many all along":             {known(func(int) int64 { return 300 }), nil, "bounded graph main.total", 0, true, 100},
		"tensors of another holder":     {perStep, []block{{"list", 32 << 10, 0}}, "leak graph main.total", 6 << 10, false, 100},
		"tensors that the graph has":    {perStep, []block{{"total", 32 << 10, 0}}, "leak cpu main.total", 6<<10 + 4<<10, false, 100},
		"numbers that the graph saves":  {perStep, []block{{"", 8, 0}}, "leak graph main.total", 6 << 10, false, 100},
		"a graph of a list, by walks":   {known(func(int) int64 { return 0 }), []block{{"total", 32 << 10, 0}}, "leak cpu main.total", 6<<10 + 4<<10, false, 100},
		"a little of a large process":   {perStep, nil, "leak graph main.total", 6 << 10, false, 500},
	} {
		t.Run(name, func(t *testing.T) {
			run := graphRun(c.base, c.nodes, c.blocks...)
			last := run.Snapshots[len(run.Snapshots)-1]
			for _, b := range c.blocks {
				stack := last.Blocks.Stack[1]
				last.Holders = append(last.Holders, snapshot.Holder{Stack: stack, Path: "main." + cmp.Or(b.stack, "total"), Kind: "list", Items: 24})
			}
			if c.nodes(23) == 0 {
				nowhere := last.Stacks.InternFrames([]snapshot.Frame{{Function: "autograd's graph"}})
				last.Holders = append(last.Holders, snapshot.Holder{Stack: nowhere, Path: "main.total", Kind: snapshot.Nodes, Items: 96})
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.OfProcess() {
				f = r.Findings[1]
			}
			got := []string{string(f.Verdict), string(f.Rows[0].Device.Kind), "nobody"}
			if f.Holder != nil {
				got[2] = f.Holder.Path
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %s, want %s: %q", text, c.want, f.Reasons)
			}
			if (r.ProcessGrowth() != nil) != c.doubt {
				t.Errorf("unexplained: %+v", r.ProcessGrowth())
			}
			if rate := f.Rate.Bytes.Value; rate < 0.99*c.rate || rate > 1.01*c.rate {
				t.Errorf("%.0f bytes a step, want %.0f", rate, c.rate)
			}
			if (f.Nodes != nil) != (c.rate > 0) {
				t.Errorf("nodes take %+v", f.Nodes)
			}
			if c.rate > 0 && strings.Contains(strings.Join(f.Reasons, "; "), "size is unknown") {
				t.Errorf("a size is unknown, beside a rate of %.0f bytes a step: %q", f.Rate.Bytes.Value, f.Reasons)
			}
			if n := f.Nodes; n != nil {
				rate := float64(n.Growth) / (n.To - n.From)
				if rate < 0.99*n.Rate.Bytes.Value || rate > 1.01*n.Rate.Bytes.Value {
					t.Errorf("%s %s are no %.0f bytes a step", n.Growth, n.Between(), n.Rate.Bytes.Value)
				}
			}
			for _, other := range r.Findings[1:] {
				if other.Verdict == Leak && other.Nodes != nil || len(f.Behind) > 0 && (other.ofNodes() || other.keeps(f.Holder)) {
					t.Errorf("two leaks of one graph")
				}
			}
			if f.Verdict == Leak && f.ofNodes() && (f.Cause == nil || f.Cause.ID != "graph-retained") {
				t.Errorf("got the cause %+v", f.Cause)
			}
		})
	}
}
