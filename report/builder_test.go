package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\nrun go test ./report -update", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got); if that is wanted, run go test ./report -update\n%s", path, d)
	}
}

// rendered returns what write wrote, and fails the test on its error.
func rendered(t testing.TB, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// builder makes snapshots of one device, block by block.
type builder struct {
	s       *snapshot.Snapshot
	segment int
	end     uint64
}

// newSnapshot begins a snapshot at a step with one segment of the given size.
func newSnapshot(stacks *snapshot.Stacks, step int64, reserved snapshot.Bytes) *builder {
	const base = 0x7f0000000000
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: 0, Phase: "train", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(step) * time.Second)},
		Rank: snapshot.NoRank, Producer: "memdiag engine", Stacks: stacks,
		Devices:  []snapshot.Device{{Kind: snapshot.CUDA, Name: "NVIDIA H200", Limit: 2 * snapshot.GiB, Meters: snapshot.Meters{Reserved: reserved, Driver: reserved + 300*snapshot.MiB}}},
		Segments: []snapshot.Segment{{Address: base, Size: reserved}},
	}
	s.Blocks.BirthStep = []int64{}
	return &builder{s: s, end: base}
}

func (b *builder) block(stack snapshot.StackID, state snapshot.State, size, requested snapshot.Bytes, born int64) {
	s := b.s
	s.Blocks.Segment = append(s.Blocks.Segment, int32(b.segment))
	s.Blocks.Address = append(s.Blocks.Address, b.end)
	s.Blocks.Size = append(s.Blocks.Size, size)
	s.Blocks.Requested = append(s.Blocks.Requested, requested)
	s.Blocks.State = append(s.Blocks.State, state)
	s.Blocks.Stack = append(s.Blocks.Stack, stack)
	s.Blocks.BirthStep = append(s.Blocks.BirthStep, born)
	b.end += uint64(size)
	s.Segments[b.segment].NumBlocks++
	m := &s.Devices[0].Meters
	switch state {
	case snapshot.Live:
		m.Requested += requested
		m.Allocated += size
		m.Active += size
	case snapshot.Pending:
		m.Active += size
	}
}

// done fills the rest of the segment with a free block.
func (b *builder) done() *snapshot.Snapshot {
	seg := b.s.Segments[b.segment]
	if rest := seg.Size - snapshot.Bytes(b.end-seg.Address); rest > 0 {
		b.block(snapshot.NoStack, snapshot.Free, rest, 0, snapshot.NoStep)
	}
	return b.s
}

// Stacks of the pyramid run, innermost frame first.
var (
	featureFrames = []snapshot.Frame{
		{Function: "mem.(*Device).Alloc", File: "engine/mem/device.go", Line: 210},
		{Function: "engine.(*Tensor).empty", File: "engine/tensor.go", Line: 77},
		{Function: "engine.Conv2D", File: "engine/ops.go", Line: 45},
		{Function: "workload.(*Pyramid).Forward", File: "engine/workload/feature_pyramid.go", Line: 88},
		{Function: "train.(*Loop).Step", File: "engine/train/loop.go", Line: 64},
		{Function: "train.(*Loop).Run", File: "engine/train/loop.go", Line: 31},
		{Function: "workload.RunPyramid", File: "engine/workload/feature_pyramid.go", Line: 31},
		{Function: "main.main", File: "cmd/memdiag/main.go", Line: 9},
		{Function: "runtime.main", File: "/usr/local/go/src/runtime/proc.go", Line: 283},
	}
	optimizerFrames = []snapshot.Frame{
		{Function: "mem.(*Device).Alloc", File: "engine/mem/device.go", Line: 210},
		{Function: "optim.(*Adam).Step", File: "engine/optim/adam.go", Line: 52},
		{Function: "workload.RunPyramid", File: "engine/workload/feature_pyramid.go", Line: 40},
	}
	weightFrames = []snapshot.Frame{
		{Function: "nn.NewConv2D", File: "engine/nn/conv.go", Line: 30},
		{Function: "workload.NewPyramid", File: "engine/workload/feature_pyramid.go", Line: 20},
	}
	bufferFrames = []snapshot.Frame{
		{Function: "workload.(*Pyramid).warm", File: "engine/workload/feature_pyramid.go", Line: 61},
	}
)

// pyramid is a run of 50 steps, a snapshot every five: 512 KiB leak a step, the
// optimizer's state is made in the first step, the weights stay, and a buffer of
// 1 MiB is given back half-way.
func pyramid() *snapshot.Run {
	stacks := snapshot.NewStacks()
	feature, adam := stacks.InternFrames(featureFrames), stacks.InternFrames(optimizerFrames)
	weights, buffer := stacks.InternFrames(weightFrames), stacks.InternFrames(bufferFrames)
	run := &snapshot.Run{}
	for step := int64(0); step <= 50; step += 5 {
		b := newSnapshot(stacks, step, 64*snapshot.MiB)
		for range 4 {
			b.block(weights, snapshot.Live, 2*snapshot.MiB, 2*snapshot.MiB, 0)
		}
		if step < 25 {
			b.block(buffer, snapshot.Live, snapshot.MiB, snapshot.MiB, 0)
		}
		if step > 0 {
			b.block(adam, snapshot.Live, 8*snapshot.MiB, 8*snapshot.MiB, 1)
			b.block(adam, snapshot.Live, 8*snapshot.MiB, 8*snapshot.MiB, 1)
		}
		for born := int64(1); born <= step; born++ {
			b.block(feature, snapshot.Live, 512*snapshot.KiB, 500*snapshot.KiB, born)
		}
		b.block(snapshot.NoStack, snapshot.Pending, snapshot.MiB, snapshot.MiB, step)
		b.block(snapshot.NoStack, snapshot.Live, 4*snapshot.KiB, 4000, snapshot.NoStep)
		s := b.done()
		s.Holders = []snapshot.Holder{{Stack: feature, Path: "Pyramid.features", Kind: "list", Items: int(step)}}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// pyramidResult is the pyramid run's comparison with a judgement that is written
// here: the golden files pin how a judgement is shown, not diff's opinion.
func pyramidResult(t testing.TB) *diff.Result {
	t.Helper()
	r := analyzed(t, pyramid())
	exactly := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 10} }
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Cause, f.CauseWhy, f.Others, f.RunsOut = nil, "", nil, nil
		switch f.Growth().Blocks {
		case 50:
			f.Verdict, f.Evidence = diff.Leak, diff.Strong
			f.Reasons = []string{"live bytes rose in each of the 9 intervals after warm-up"}
			f.Rate = diff.Rate{Unit: "step", Blocks: exactly(1), Bytes: exactly(512 * 1024)}
			f.Cause = &cause.Cause{ID: "activations-kept", Name: "activations retained after the step", Fix: "clear the list at the start of each forward"}
			f.CauseWhy = "the growing list Pyramid.features holds them"
			f.Others = []cause.Match{{Cause: &cause.Cause{ID: "hook-not-removed", Name: "hooks that are not removed"}}}
			f.RunsOut = &diff.Forecast{Step: 4048, Low: 4020, High: 4060, Limit: 2 * snapshot.GiB}
		default:
			f.Verdict, f.Evidence = diff.Bounded, diff.Strong
			f.Reasons = []string{"it rose and stopped"}
			f.Rate = diff.Rate{Unit: "step", Blocks: trend.Slope{Low: -0.1, High: 0.1, N: 10}, Bytes: trend.Slope{N: 10}}
		}
	}
	return r
}

// analyzed is a run's comparison, all that grew being judged inconclusive.
func analyzed(t testing.TB, run *snapshot.Run) *diff.Result {
	t.Helper()
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	r.Notes = nil
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Verdict, f.Evidence, f.Reasons = diff.Inconclusive, diff.Weak, []string{"two snapshots only"}
		f.Rate = diff.Rate{Unit: "step", Blocks: trend.Slope{Value: 0.04, Low: 0.04, High: 0.04, N: 2}, Bytes: trend.Slope{Value: 102.4, Low: 102.4, High: 102.4, N: 2}}
		f.Cause, f.CauseWhy, f.Others, f.RunsOut = nil, "", nil, nil
	}
	return r
}

// attacked is a comparison in which all that comes from a file is hostile.
func attacked(t testing.TB) *diff.Result {
	t.Helper()
	const name = "\x1b[31m</title>\u202e"
	r := analyzed(t, pair(hostile))
	r.Last.Producer, r.Last.Devices[0].Name, r.Last.Mark.Phase = name, name, name
	r.Notes = []string{name}
	for i := range r.Findings {
		r.Findings[i].Reasons = []string{name}
		r.Findings[i].Holder = &snapshot.Holder{Path: name, Kind: name}
	}
	return r
}

// pair is a run of two snapshots, the second with one block more on the stack.
func pair(frames []snapshot.Frame) *snapshot.Run {
	stacks := snapshot.NewStacks()
	id := stacks.InternFrames(frames)
	a, b := newSnapshot(stacks, 0, 2*snapshot.MiB), newSnapshot(stacks, 10, 2*snapshot.MiB)
	for range 2 {
		a.block(id, snapshot.Live, 512, 500, 0)
		b.block(id, snapshot.Live, 512, 500, 0)
	}
	b.block(id, snapshot.Live, 1024, 1024, 5)
	return &snapshot.Run{Snapshots: []*snapshot.Snapshot{a.done(), b.done()}}
}

// empty is a run that holds nothing at all.
func empty() *snapshot.Run {
	stacks := snapshot.NewStacks()
	bare := func() *snapshot.Snapshot {
		return &snapshot.Snapshot{Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: stacks}
	}
	return &snapshot.Run{Snapshots: []*snapshot.Snapshot{bare(), bare()}}
}

// hostile are frames whose names attack whatever shows them.
var hostile = []snapshot.Frame{
	{Function: "f\x1b[2J\x1b]0;owned\x07</script><script>alert(1)</script>", File: "a\u202egnp.\"py'\n.py", Line: 3},
	{Function: "<b>&amp;\x00;semi;colon\u009b31m", File: "my dir/x\xff y.py", Line: 7},
}
