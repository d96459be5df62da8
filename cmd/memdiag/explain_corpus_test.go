package main

import (
	"hash/fnv"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/bench/corpus"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// nameless replaces the words that a program chose, but for what a framework calls
// for by name, with words that mean nothing.
func nameless(name string) string {
	return regexp.MustCompile(`[A-Za-z]+`).ReplaceAllStringFunc(name, func(w string) string {
		switch strings.ToLower(w) {
		case "forward", "backward", "step", "func", "workload":
			return w
		}
		h := fnv.New32()
		h.Write([]byte(w))
		return "q" + strconv.Itoa(int(h.Sum32()%1e6)) + "z"
	})
}

// namelessStacks are the stacks with the names of workloads replaced, and the new id
// of each.
func namelessStacks(old *snapshot.Stacks) (*snapshot.Stacks, []snapshot.StackID) {
	s := snapshot.NewStacks()
	ids := make([]snapshot.StackID, old.Len())
	for i := range ids {
		frames := old.Frames(snapshot.StackID(i))
		for k := range frames {
			if f := &frames[k]; strings.HasPrefix(f.File, "engine/workload/") {
				f.Function = nameless(f.Function)
				f.File = "engine/workload/" + nameless(strings.TrimSuffix(path.Base(f.File), ".go")) + ".go"
			}
		}
		ids[i] = s.InternFrames(frames)
	}
	return s, ids
}

// makeNameless takes the names of a workload out of its run.
func makeNameless(run *snapshot.Run) {
	var ids []snapshot.StackID
	for _, s := range run.Snapshots {
		s.Stacks, ids = namelessStacks(s.Stacks)
		for i, id := range s.Blocks.Stack {
			s.Blocks.Stack[i] = ids[id]
		}
		for i := range s.Segments {
			s.Segments[i].Stack = ids[s.Segments[i].Stack]
		}
		for i := range s.Holders {
			s.Holders[i].Stack, s.Holders[i].Path = ids[s.Holders[i].Stack], nameless(s.Holders[i].Path)
		}
	}
	run.Series.Stacks, ids = namelessStacks(run.Series.Stacks)
	for i := range run.Series.Sites {
		run.Series.Sites[i].Stack = ids[run.Series.Sites[i].Stack]
	}
}

// firstCause is that of the first finding; "" for none.
func firstCause(t *testing.T, run *snapshot.Run) string {
	t.Helper()
	r, err := analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) == 0 || r.Findings[0].Cause == nil {
		return ""
	}
	return r.Findings[0].Cause.ID
}

// TestCausesOfTheWorkloads counts causes that are told right, and again without any
// name that the programs chose: a catalogue that goes by names of the corpus would
// tell few of those.
func TestCausesOfTheWorkloads(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("every leak is run, which takes long under the race detector")
	}
	runs, err := corpus.Runs(workload.All(), corpus.Plan{Seeds: 1, Parts: 10, Counters: true})
	if err != nil {
		t.Fatal(err)
	}
	leaks, named, blind := 0, 0, 0
	for _, r := range runs {
		if !r.Leaks() {
			continue
		}
		run, err := r.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaks++
		if got := firstCause(t, run); got == r.Workload.Cause {
			named++
		} else {
			t.Logf("%s: %q, and it is %s", r.Workload.ID, got, r.Workload.Cause)
		}
		makeNameless(run)
		if got := firstCause(t, run); got == r.Workload.Cause {
			blind++
		} else {
			t.Logf("%s without names: %q, and it is %s", r.Workload.ID, got, r.Workload.Cause)
		}
	}
	t.Logf("%d of %d causes are told right, %d without names", named, leaks, blind)
	if 10*named < 9*leaks || 10*blind < 7*leaks {
		t.Errorf("%d of %d causes are told right, %d without names; want 90 and 70 %%", named, leaks, blind)
	}
}
