package canary_test

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/snapshot"
)

// taken is a snapshot of a program that keeps a block of 1,000 B a step, and of its
// canary, which keeps one of 512 B; both are called from one line.
func taken(step int64) (*snapshot.Snapshot, *snapshot.Stacks) {
	s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
	main := snapshot.Frame{Function: "main", File: "train.py", Line: 9}
	own := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 3}, main})
	bird := s.Stacks.InternFrames([]snapshot.Frame{{Function: "Canary.plant", File: "/tmp/memdiag-agent-1/memdiag/_canary.py", Line: 20}, main})
	for i := range step {
		for stack, size := range map[snapshot.StackID]snapshot.Bytes{own: 1000, bird: 512} {
			b := &s.Blocks
			b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i)*4096+uint64(stack))
			b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
			b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.BirthStep, i)
		}
	}
	held := snapshot.Bytes(step) * 1512
	s.Devices = []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown, Meters: snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 1 << 20}}}
	s.Segments = []snapshot.Segment{{Size: 1 << 20, NumBlocks: s.Blocks.Len()}}
	return s, s.Stacks
}

func recorded(key string) *snapshot.Run {
	run := &snapshot.Run{Info: snapshot.Info{Parameters: map[string]string{key: "true"}}}
	for step := int64(0); step <= 60; step += 10 {
		s, _ := taken(step)
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

func TestACanaryIsCaughtAndTheProgramsOwnLeakStays(t *testing.T) {
	run := recorded(canary.Key)
	whole, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f, caught := canary.Found(whole); f == nil || !caught {
		t.Errorf("not caught: %+v", whole.Findings)
	}
	own, err := diff.Analyze(canary.Without(run), diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := canary.Found(own); f != nil || len(own.Findings) != 1 || own.Leaks() != 1 || len(own.Findings[0].Rows) != 1 {
		t.Errorf("without the canary: %+v", own.Findings)
	}
	if got := own.Last.Devices[0].Meters.Allocated; got != 60_000 {
		t.Errorf("%d bytes are live without it", got)
	}
	if again := run.Snapshots[6].Devices[0].Meters.Allocated; again != 60*1512 || len(run.Snapshots[6].Blocks.State) != 120 || run.Snapshots[6].Blocks.State[0] != snapshot.Live {
		t.Error("the run was changed")
	}
}

func TestNoCanaryIsPossibleWhereMemdiagDidNotLook(t *testing.T) {
	run := recorded(canary.Key)
	if !canary.Possible(run) {
		t.Error("none was possible in a Python process")
	}
	for _, s := range run.Snapshots {
		s.Producer = "memdiag record"
	}
	if canary.Possible(run) || canary.Possible(&snapshot.Run{}) {
		t.Error("one was possible in a process that was looked at from outside")
	}
}

func TestARunWithoutACanaryIsReturnedAsItIs(t *testing.T) {
	if run := recorded("other"); canary.Without(run) != run {
		t.Error("it was copied")
	}
}

func TestCountersLoseTheirCanary(t *testing.T) {
	run := recorded(canary.Key)
	_, stacks := taken(1)
	meters := snapshot.Meters{Requested: 1512, Allocated: 1512, Active: 1512}
	run.Series = &snapshot.Series{
		Devices: run.Snapshots[0].Devices, Stacks: stacks,
		Sites:  []snapshot.SeriesSite{{Stack: 1}, {Stack: 2}},
		Points: []snapshot.Point{{Meters: []snapshot.Meters{meters}, Sites: []snapshot.SiteCount{{Site: 0, Count: 1, Bytes: 1000}, {Site: 1, Count: 1, Bytes: 512}}}},
	}
	p := canary.Without(run).Series.Points[0]
	if len(p.Sites) != 1 || p.Sites[0].Site != 0 || p.Meters[0].Allocated != 1000 {
		t.Errorf("left: %+v", p)
	}
	if was := run.Series.Points[0]; len(was.Sites) != 2 || was.Meters[0] != meters {
		t.Errorf("the series was changed: %+v", was)
	}
}
