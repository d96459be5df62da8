package doctor

import (
	"context"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor/source"
)

// TestAProgramOfFewStepsHasItsChangeInTime: five steps of warm-up would be all that it takes.
func TestAProgramOfFewStepsHasItsChangeInTime(t *testing.T) {
	for _, c := range []struct {
		last int64
		want float64
	}{{4, 1}, {12, 4}, {16, 5}, {30, 5}, {200, 25}} {
		run := program(t, list, 0, 0, even).Result.Run()
		run.Snapshots = run.Snapshots[:2]
		run.Snapshots[1].Mark.Step = c.last
		r, err := diff.Analyze(run, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := from(r); got != c.want {
			t.Errorf("of %d steps the change is made from step %v on, want %v", c.last, got, c.want)
		}
	}
}

// TestAChangeThatTheProgramsEndCutsShortRefutesNothing: a list is longer at the second time that it is looked at, at the earliest.
func TestAChangeThatTheProgramsEndCutsShortRefutesNothing(t *testing.T) {
	plain, changed := program(t, list, 0, 0, even), program(t, list, 30, 0, even)
	changed.Intervened.Acts, changed.Intervened.Changed = 1, 0
	leak := &Leak{Finding: &plain.Result.Findings[0]}
	trials, _ := TrialsOf(plain.Result, leak)
	if got := JudgeTrial(trials[0], leak, plain, changed, nil); got.Verdict != Open || !strings.Contains(got.Why, "run it longer") {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

// TestProcessesWithoutARecordHaveALongerRun: they are recorded once they have grown for some seconds.
func TestProcessesWithoutARecordHaveALongerRun(t *testing.T) {
	clean, leaky := program(t, list, 1, 1, even), program(t, list, 0, 0, even)
	var asked []int64
	lab := func(_ context.Context, _ string, change Change) (*Run, error) {
		asked = append(asked, change.Steps)
		return leaky, nil
	}
	f := &Findings{Plain: clean, Steps: 50, Doubt: "a process grows", Unnamed: true}
	if err := f.decide(context.Background(), lab); err != nil || len(asked) != 1 || asked[0] != 200 || f.Leak == nil || f.Unnamed {
		t.Errorf("%v: %v, %+v", err, asked, f)
	}
	f = &Findings{Plain: clean, Doubt: "a process grows", Unnamed: true}
	if page := PageOf(f, "memdiag"); !strings.Contains(page.Needs, "a longer run") {
		t.Errorf("%+v", page)
	}
}

// TestAPatchWithWhichTheProgramFailsIsWithdrawn: the program does not bear it.
func TestAPatchWithWhichTheProgramFailsIsWithdrawn(t *testing.T) {
	plain := program(t, list, 0, 0, even)
	failed := &Run{Dir: "patched", ExitCode: 1, Said: "RuntimeError: nothing may go"}
	lab := func(context.Context, string, Change) (*Run, error) { return failed, nil }
	patch := trimmed()
	f := &Findings{Plain: plain, Leak: &Leak{Finding: &plain.Result.Findings[0]}, Patch: patch}
	if err := f.TryPatch(context.Background(), lab); err != nil || patch.Diff != "" || f.Fix != nil {
		t.Errorf("%v: %+v", err, f)
	}
	page := PageOf(f, "memdiag")
	if len(page.Patch.Refused) != 1 || page.Patch.Refused[0] != "`kept` keeps its newest item: with that the program ends with code 1: RuntimeError: nothing may go" || page.Runs[1].Dir != "patched" {
		t.Errorf("%+v", page.Patch)
	}
}

// TestAWorkersChangeBeginsAtABatch: a worker takes no steps.
func TestAWorkersChangeBeginsAtABatch(t *testing.T) {
	plain := beside(t, program(t, list, 0, 0, nil), 7)
	f, err := Examine(context.Background(), plain, nil, Findings{})
	if err != nil {
		t.Fatal(err)
	}
	if page := PageOf(f, "memdiag"); len(page.Trials) == 0 || page.Trials[0].Unit != string(diff.Batch) {
		t.Errorf("%+v", page.Trials)
	}
}

// trimmed is a patch of one leak.
func trimmed() *Patch {
	diff := "--- a/train.py\n+++ b/train.py\n"
	says := "`kept` keeps its newest item"
	return &Patch{
		Files: []source.File{{Name: "train.py", Text: "del kept[:-1]\n"}}, Diff: diff, Says: []string{says},
		Leaks: []LeakPatch{{Of: []string{"kept grows"}, Says: says, Diff: diff}},
	}
}
