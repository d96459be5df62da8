package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// Of a program of 200 steps with a snapshot at every tenth.
const steps, apart = 200, 10

var began = time.Unix(1_000_000, 0)

// program is a run of one that keeps 1 KiB of each step in a list. From a step on, if that is not 0, the share of it that goes.
func program(t *testing.T, holder snapshot.Holder, from int64, goes float64, loss func(step int64) float64) *Run {
	t.Helper()
	run := &snapshot.Run{Info: snapshot.Info{Steps: steps, Command: []string{"python", "train.py"}}}
	for step := int64(0); step <= steps; step += apart {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: step, Time: began.Add(time.Duration(step) * time.Second)}, Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
		s.Devices = []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}}
		stack := s.Stacks.InternFrames([]snapshot.Frame{{Function: "fit", File: "train.py", Line: 7}})
		if holder.Stack = stack; holder.Items > 0 {
			holder.Items = int(step)
		}
		s.Holders = append(s.Holders, holder)
		b := &s.Blocks
		for i := range step {
			if from > 0 && i >= from && float64(i%10) < 10*goes {
				continue
			}
			b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i)*4096)
			b.Size, b.Requested = append(b.Size, 1024), append(b.Requested, 1024)
			b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.BirthStep, i)
		}
		held := snapshot.Bytes(b.Len()) * 1024
		s.Devices[0].Meters = snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 64 << 20}
		s.Segments = []snapshot.Segment{{Size: 64 << 20, NumBlocks: b.Len()}}
		run.Snapshots = append(run.Snapshots, s)
	}
	if loss != nil {
		run.Losses = &snapshot.Losses{}
		for step := range int64(steps) {
			run.Losses.Backward = append(run.Losses.Backward, snapshot.Loss{Step: step, Value: loss(step)})
		}
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	out := &Run{Dir: "plain", Result: r, Took: time.Second, Output: Output{Bytes: 3, Sum: 1}}
	if from > 0 {
		out.Intervened = &record.Intervened{Found: true, Since: float64(began.Unix() + from), Acts: steps - from, Changed: steps - from}
	}
	return out
}

var list = snapshot.Holder{Path: "fit.<locals>.kept", Kind: "list", Items: steps}

func even(step int64) float64 { return 1 / float64(step+1) }

func TestATrialIsJudgedByGrowthAndLosses(t *testing.T) {
	other := func(step int64) float64 { return even(step) + float64(step/100) }
	twice := func(step int64) float64 { return 2 * even(step) }
	with := func(r *Run, change func(*Run)) *Run { change(r); return r }
	prints := func(r *Run) { r.Output.Sum = 2 }
	for _, c := range []struct {
		name                  string
		plain, changed, again *Run
		want                  Verdict
		safe                  bool
		why                   string
	}{
		{"gone, losses equal", program(t, list, 0, 0, even), program(t, list, 30, 1, even), nil, Proven, true, "the same to the last bit"},
		{"nearly gone", program(t, list, 0, 0, even), program(t, list, 30, 0.9, even), nil, Proven, true, "and with the change 102"},
		{"less, not gone", program(t, list, 0, 0, even), program(t, list, 30, 0.7, even), nil, Open, false, "less, but not gone"},
		{"the growth stays", program(t, list, 0, 0, even), program(t, list, 30, 0, even), nil, Refuted, false, "stays"},
		{"gone, other losses", program(t, list, 0, 0, even), program(t, list, 30, 1, other), program(t, list, 0, 0, even), Needed, false, "differ from step 100 on"},
		{"gone, other losses in each run", program(t, list, 0, 0, even), program(t, list, 30, 1, other), program(t, list, 0, 0, twice), Proven, false, "Set the random seeds"},
		{"gone, no second run", program(t, list, 0, 0, even), program(t, list, 30, 1, other), nil, Proven, false, "no second unchanged run"},
		{"gone, prints something else", program(t, list, 0, 0, even), with(program(t, list, 30, 1, even), prints), program(t, list, 0, 0, even), Proven, false, "the printed output differs"},
		{"no losses, prints the same", program(t, list, 0, 0, nil), program(t, list, 30, 1, nil), program(t, list, 0, 0, nil), Proven, true, "printed output is the same"},
		{"no losses, prints something else", program(t, list, 0, 0, nil), with(program(t, list, 30, 1, nil), prints), program(t, list, 0, 0, nil), Needed, false, "needs this memory"},
		{"no losses, prints something else in each run", program(t, list, 0, 0, nil), program(t, list, 30, 1, nil), with(program(t, list, 0, 0, nil), prints), Proven, false, "not compared"},
		{"it fails without", program(t, list, 0, 0, even), with(program(t, list, 30, 1, even), func(r *Run) { r.ExitCode, r.Said = 1, "IndexError" }), nil, Needed, false, "ends with code 1: IndexError"},
		{"it fails before", program(t, list, 0, 0, even), &Run{ExitCode: 1, Said: "no such device"}, nil, Open, false, "no such device"},
		{"the change raises", program(t, list, 0, 0, even), with(program(t, list, 30, 1, even), func(r *Run) { r.Intervened.Failed = "KeyError" }), nil, Open, false, "KeyError"},
		{"the holder is not there", program(t, list, 0, 0, even), with(program(t, list, 30, 1, even), func(r *Run) { r.Intervened.Found = false }), nil, Open, false, "was not found"},
		{"nothing to change", program(t, list, 0, 0, even), with(program(t, list, 30, 0, even), func(r *Run) { r.Intervened.Changed = 0 }), nil, Refuted, false, "nothing to change"},
		{"no process was changed", program(t, list, 0, 0, even), with(program(t, list, 30, 0, even), func(r *Run) { r.Intervened = nil }), nil, Open, false, "no process of Python's"},
		{"too late", program(t, list, 0, 0, even), program(t, list, 195, 1, even), nil, Open, false, "too few snapshots"},
	} {
		leak := &Leak{Finding: &c.plain.Result.Findings[0]}
		if leak.Finding.Verdict != diff.Leak {
			t.Fatalf("%s: %+v", c.name, leak.Finding)
		}
		trials, _ := TrialsOf(c.plain.Result, leak)
		got := JudgeTrial(trials[0], leak, c.plain, c.changed, c.again)
		if got.Verdict != c.want || got.Safe != c.safe || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %s, safe %v: %s", c.name, got.Verdict, got.Safe, got.Why)
		}
	}
}

func TestWhatIsTriedFollowsTheHolder(t *testing.T) {
	for _, c := range []struct {
		holder snapshot.Holder
		kind   record.InterventionKind
	}{
		{list, record.Cap},
		{snapshot.Holder{Path: "m.cache", Kind: "cache", Items: steps}, record.Clear},
		{snapshot.Holder{Path: "m.net.layer._forward_hooks", Kind: "dict", Items: steps}, record.Unhook},
		{snapshot.Holder{Path: "m.newest.previous…", Kind: "chain", Items: steps}, record.Cut},
		{snapshot.Holder{Path: "fit.<locals>.total", Kind: "graph"}, record.Detach},
		{snapshot.Holder{Path: snapshot.Nameless, Kind: "object"}, record.Collect},
	} {
		plain := program(t, c.holder, 0, 0, nil)
		trials, _ := TrialsOf(plain.Result, &Leak{Finding: &plain.Result.Findings[0]})
		if len(trials) == 0 || len(trials) > MostTrials || trials[0].Kind != c.kind || trials[0].From != steps/before || trials[0].Path != c.holder.Path && c.kind != record.Collect {
			t.Errorf("%+v: %+v", c.holder, trials)
		}
	}
}

func TestAnExaminationRunsTheProgramAsItIsLast(t *testing.T) {
	plain := program(t, list, 0, 0, even)
	var names []string
	lab := func(_ context.Context, name string, change Change) (*Run, error) {
		names = append(names, name)
		if change.Intervention.Kind == record.Count {
			return program(t, list, 0, 0, even), nil
		}
		return program(t, list, int64(change.Intervention.From), 1, even), nil
	}
	found, err := Examine(context.Background(), plain, lab, Findings{})
	if err != nil || strings.Join(names, " ") != "trial-1-cap again" || len(found.Tried) != 1 || found.Tried[0].Verdict != Proven {
		t.Errorf("%v, %v, %+v", err, names, found.Tried)
	}
	var text, out bytes.Buffer
	page := PageOf(found, "memdiag")
	if err := errors.Join(page.Text(&text), page.JSON(&out)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Confirm: a leak, by strong evidence\n", "Locate: +1.00 KiB/step at train.py:7\n", "Analyse: proven: `fit.<locals>.kept` holds it. With the change, the program computes the same results\n", "from step 25 on\n", "Verify: memdiag verify plain NEW_RUN\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	var back Page
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Trials[0].Verdict != Proven || back.SchemaVersion != 1 {
		t.Errorf("%v: %+v", err, back)
	}

	// Once one is proven, the others are not run.
	cached := program(t, snapshot.Holder{Path: "m.cache", Kind: "cache", Items: steps}, 0, 0, even)
	names = nil
	if found, err = Examine(context.Background(), cached, lab, Findings{}); err != nil || strings.Join(names, " ") != "trial-1-clear again" || len(found.Trials) != 2 || len(found.Tried) != 1 || !strings.Contains(strings.Join(found.Untried, ""), "not run") {
		t.Errorf("%v, %v, %+v", err, names, found)
	}

	// A program that fails for want of items has as many, and what else it prints is said.
	fails := func(_ context.Context, name string, change Change) (*Run, error) {
		run, err := lab(context.Background(), name, change)
		switch change.Intervention.Kind {
		case record.Cap:
			run.ExitCode, run.Said = 1, "IndexError: list index out of range"
		case record.Share:
			run.Output.Sum++
		}
		return run, err
	}
	names = nil
	if found, err = Examine(context.Background(), plain, fails, Findings{}); err != nil || strings.Join(names, " ") != "trial-1-cap trial-2-share again" || len(found.Tried) != 2 || found.Tried[0].Kind != record.Share || found.Tried[0].Verdict != Proven || found.Tried[0].Safe || found.Tried[1].Verdict != Needed {
		t.Errorf("%v, %v, %+v", err, names, found.Tried)
	}

	// Without losses the printed output tells that it uses what it keeps.
	quiet := program(t, list, 0, 0, nil)
	silent := func(_ context.Context, name string, change Change) (*Run, error) {
		run, err := fails(context.Background(), name, change)
		run.Result.Run().Losses = nil
		return run, err
	}
	if found, err = Examine(context.Background(), quiet, silent, Findings{}); err != nil || len(found.Tried) != 2 || found.Tried[0].Kind != record.Share || !strings.Contains(PageOf(found, "memdiag").Answer, "and the program uses it") {
		t.Errorf("%v, %+v, %+v", err, found.Tried, PageOf(found, "memdiag").Answer)
	}

	// An interrupt in the second run, and a run without a lab.
	stopped := func(_ context.Context, name string, change Change) (*Run, error) {
		if change.Intervention.Kind == record.Count {
			return nil, context.Canceled
		}
		return lab(context.Background(), name, change)
	}
	found, err = Examine(context.Background(), plain, stopped, Findings{})
	if !errors.Is(err, context.Canceled) || found.Stopped != "it was interrupted" || len(found.Tried) != 1 || found.Tried[0].Verdict != Proven {
		t.Errorf("%v: %+v", err, found)
	}
	if found, err = Examine(context.Background(), plain, nil, Findings{}); err != nil || len(found.Tried) != 0 || len(found.Trials) != 1 || !strings.HasPrefix(PageOf(found, "memdiag").Answer, "not proven") {
		t.Errorf("%v: %+v", err, found)
	}
}

func TestNothingIsTriedOfAProgramThatDoesNotLeak(t *testing.T) {
	run := program(t, list, 0, 0, even).Result.Run()
	for _, s := range run.Snapshots { // all hold what the last one does
		s.Blocks, s.Segments, s.Devices = run.Snapshots[len(run.Snapshots)-1].Blocks, run.Snapshots[len(run.Snapshots)-1].Segments, run.Snapshots[len(run.Snapshots)-1].Devices
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Examine(context.Background(), &Run{Result: r}, func(context.Context, string, Change) (*Run, error) {
		t.Error("it ran again")
		return nil, errors.New("ran")
	}, Findings{})
	if err != nil || found.Leak != nil || found.Verdict() == diff.Leak || PageOf(found, "memdiag").Answer != "" {
		t.Errorf("%v: %+v", err, found)
	}
}

func TestTheFewestPartsThatEndItAreFound(t *testing.T) {
	for _, c := range []struct{ all, need string }{
		{"abcd", "a"}, {"abcd", "d"}, {"abcd", "bc"}, {"abcde", "ae"}, {"a", "a"}, {"abcdefgh", "abcdefgh"},
	} {
		tries := 0
		got, err := fewest([]byte(c.all), func(some []byte) (bool, error) {
			tries++
			for _, b := range []byte(c.need) {
				if !bytes.Contains(some, []byte{b}) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil || string(got) != c.need || tries > 60 {
			t.Errorf("of %s: %s in %d tries, %v", c.all, got, tries, err)
		}
	}
}

func TestPartsAreTakenAwayWhereNoLineIsKnown(t *testing.T) {
	nameless := snapshot.Holder{Path: snapshot.Nameless, Kind: "object"}
	plain := program(t, nameless, 0, 0, even)
	lab := func(_ context.Context, name string, change Change) (*Run, error) {
		switch {
		case change.Intervention.Kind == record.Count:
			return program(t, nameless, 0, 0, even), nil
		case change.Intervention.Kind != record.Switch:
			return program(t, nameless, 30, 0, even), nil // the growth stays
		case strings.Contains(change.Intervention.Path, "hooks"):
			return program(t, nameless, 1, 1, even), nil
		}
		return program(t, nameless, 1, 0, even), nil
	}
	found, err := Examine(context.Background(), plain, lab, Findings{Switches: []Switch{{"--no-eval", []string{"--no-eval"}}}})
	if err != nil || found.Tried[0].Verdict != Proven || found.Tried[0].Claim != "the leak comes with hooks" || found.Tried[0].Safe {
		t.Errorf("%v: %+v", err, found.Tried)
	}
}

func TestCyclesAreJudgedEachAndTogether(t *testing.T) {
	leaky := program(t, list, 0, 0, even)
	leaky.Intervened = nil
	of := func(run *Run, left snapshot.Bytes, budgets ...budget.Budget) Cycle {
		c, err := CycleOf(1, run, budgets, left, time.Unix(1e9, 0))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := of(leaky, 0); c.Verdict != CycleLeak || c.Leaks != 1 || len(c.Why) != 1 {
		t.Errorf("%+v", c)
	}
	clean := program(t, list, 1, 1, even)
	clean.Intervened = nil
	// As by the gate: a budget of what is not there is in doubt.
	nowhere, err := budget.Parse(budget.Live, "nowhere:0=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	if c := of(clean, 0, nowhere); c.Verdict != CycleUndecided || len(c.Why) == 0 {
		t.Errorf("%+v", c)
	}
	if c := of(&Run{ExitCode: 3, Why: "no snapshot", Said: "KeyError"}, -5); c.Verdict != CycleFailed || c.Left != 0 || !strings.Contains(c.Why[1], "KeyError") {
		t.Errorf("%+v", c)
	}
	var cycles []Cycle
	for i := range int64(6) {
		cycles = append(cycles, Cycle{Peak: 100<<20 + i<<20*4})
	}
	if got := Across(cycles); len(got) != 1 || !strings.Contains(got[0], "the peak rises") {
		t.Error(got)
	}
	if got := Across(append(cycles[:2], Cycle{Left: 1 << 20, Peak: 1})); len(got) != 1 || !strings.Contains(got[0], "1.00 MiB of shared memory") {
		t.Error(got)
	}
}
