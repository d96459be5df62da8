package doctor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// moved is a run whose list is cut, while from a step on another line keeps as much.
func moved(t *testing.T, from int64) *Run {
	t.Helper()
	out := program(t, list, from, 1, even)
	run := out.Result.Run()
	for _, s := range run.Snapshots {
		stack, b := s.Stacks.InternFrames([]snapshot.Frame{{Function: "log", File: "train.py", Line: 30}}), &s.Blocks
		for i := range max(0, s.Mark.Step-from) {
			b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i)<<12|1<<40)
			b.Size, b.Requested = append(b.Size, 1024), append(b.Requested, 1024)
			b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.BirthStep, from+i)
		}
		s.Segments[0].NumBlocks = b.Len()
		held := snapshot.Bytes(b.Len()) * 1024
		s.Devices[0].Meters = snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 64 << 20}
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	out.Result = r
	return out
}

// watched is the code of the program, whose leaking line ran in so many of 40 looks.
func watched(looks int) snapshot.Code {
	return snapshot.Code{Python: "3.13", Looks: 40, Files: map[string]string{"train.py": fmt.Sprintf("fit:1:abc:6x%d", looks)}}
}

func TestACauseIsProvenOnlyByAProgramThatDoesItsWork(t *testing.T) {
	plain := func() *Run {
		r := program(t, list, 0, 0, even)
		r.Result.Run().Info.Code = watched(40)
		return r
	}
	cut := func(change func(*Run)) *Run {
		r := program(t, list, 30, 1, even)
		r.Result.Run().Info.Code = watched(40)
		change(r)
		return r
	}
	losses := func(r *Run) *[]snapshot.Loss { return &r.Result.Run().Losses.Backward }
	for _, c := range []struct {
		name           string
		changed, again *Run
		want           Verdict
		why            string
	}{
		{"it works", cut(func(*Run) {}), nil, Proven, "gone"},
		{"fewer steps", cut(func(r *Run) { r.Result.Run().Info.Steps, r.Result.Last.Mark.Step = 150, 150 }), nil, Open, "it takes 150 steps, and 200 without"},
		{"steps by the clock", cut(func(r *Run) { r.Result.Run().Info.Steps = 190 }), func() *Run { r := plain(); r.Result.Run().Info.Steps = 210; return r }(), Proven, "gone"},
		{"fewer losses", cut(func(r *Run) { *losses(r) = (*losses(r))[:90] }), nil, Open, "it has 90 losses, and 200 without"},
		{"losses that are no numbers", cut(func(r *Run) { (*losses(r))[120].Value = math.NaN() }), nil, Open, "from step 120 on: NaN"},
		{"losses that stand still", cut(func(r *Run) {
			for i := range *losses(r) {
				(*losses(r))[i].Value = 1
			}
		}), nil, Open, "with the change its losses stay at 1"},
		{"the line ran less often", cut(func(r *Run) { r.Result.Run().Info.Code = watched(10) }), nil, Open, "25 % as often"},
		{"it grows elsewhere", moved(t, 30), nil, Open, "something else grows with the change: +1.00 KiB/step at train.py:30"},
		{"the second run grows no more", cut(func(*Run) {}), cut(func(*Run) {}), Open, "a second unchanged run grows less, too"},
		{"it fails", cut(func(r *Run) { r.ExitCode = 1 }), nil, Needed, "ends with code 1"},
	} {
		was := plain()
		leak := &Leak{Finding: &was.Result.Findings[0]}
		trials, _ := TrialsOf(was.Result, leak)
		got := JudgeTrial(trials[0], leak, was, c.changed, c.again)
		if got.Verdict != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %s: %s", c.name, got.Verdict, got.Why)
		}
		found := &Findings{Plain: was, Leak: leak, Tried: []Tried{got}}
		if answer := found.answer(); strings.HasPrefix(answer, "proven") != (c.want == Proven) || c.want != Proven && !strings.Contains(answer, c.why) {
			t.Errorf("%s: %s", c.name, answer)
		}
	}
}

// TestASwitchProvesNothingIfTheProgramDoesNotKnowIt: argparse ends it, or it goes on as before.
func TestASwitchProvesNothingIfTheProgramDoesNotKnowIt(t *testing.T) {
	nameless := snapshot.Holder{Path: snapshot.Nameless, Kind: "object"}
	for _, c := range []struct {
		name string
		with func(*Run) // what the user's word does
		why  string
	}{
		{"refused", func(r *Run) { r.ExitCode, r.Said = 2, "unrecognized arguments: --no-evel" }, "unrecognized arguments"},
		{"ignored", func(*Run) {}, "these arguments had no visible effect"},
	} {
		var names []string
		lab := func(_ context.Context, name string, change Change) (*Run, error) {
			r := program(t, nameless, 1, 0, even)
			switch change.Intervention.Kind {
			case record.Count:
				return program(t, nameless, 0, 0, even), nil
			case record.Switch:
				names = append(names, strings.Join(change.Args, " "))
				r.Intervened.Changed = 0
				if len(change.Args) > 0 {
					c.with(r)
				}
			}
			return r, nil
		}
		found, err := Examine(context.Background(), program(t, nameless, 0, 0, even), lab, Findings{Switches: []Switch{{"--no-evel", []string{"--no-evel"}}}})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(found.Tried, func(tried Tried) bool { return len(tried.Args) > 0 })
		if at < 0 || found.Tried[at].Verdict != Open || !strings.Contains(found.Tried[at].Why, c.why) || strings.HasPrefix(found.answer(), "proven") {
			t.Errorf("%s: %s, %+v", c.name, found.answer(), found.Tried)
		}
		if refused := c.name == "refused"; (len(names) == 2 && names[1] == "") != refused {
			t.Errorf("%s: runs with %q", c.name, names)
		}
	}
}

// TestARunThatDiedOfMemoryIsExamined: with the leak cut the program comes to its end.
func TestARunThatDiedOfMemoryIsExamined(t *testing.T) {
	died := func() *Run {
		r := program(t, list, 0, 0, even)
		r.ExitCode, r.Died, r.Output = 137, "it was killed", Output{Bytes: 1, Sum: 7}
		return r
	}
	lab := func(_ context.Context, _ string, change Change) (*Run, error) {
		if change.Intervention.Kind == record.Count {
			return died(), nil
		}
		return program(t, list, int64(change.Intervention.From), 1, even), nil
	}
	found, err := Examine(context.Background(), died(), lab, Findings{})
	if err != nil || len(found.Tried) != 1 || found.Tried[0].Verdict != Proven || !found.Tried[0].Safe {
		t.Errorf("%v: %+v", err, found.Tried)
	}
	if page := PageOf(found, "memdiag"); !strings.Contains(page.Confirm, "recorded until then: it was killed") {
		t.Error(page.Confirm)
	}
	if fix := Fixed(died(), program(t, list, 1, 1, even), died()); fix.Verified == nil || fix.Differs {
		t.Errorf("%+v", fix)
	}
	gone := died()
	gone.Intervened = nil
	if tried := JudgeTrial(found.Trials[0], found.Leak, died(), gone, nil); tried.Verdict != Open || !strings.Contains(tried.Why, "crashed with the change too") {
		t.Errorf("%+v", tried)
	}
}
