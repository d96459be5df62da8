package doctor

import (
	"context"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// beside is a program that does not leak, with a worker that is a run of its own.
func beside(t *testing.T, worker *Run, pid int) *Run {
	t.Helper()
	out := program(t, list, 1, 1, even)
	run, child := out.Result.Run(), worker.Result.Run()
	child.Role, child.PID = "loader worker 0", pid
	run.Children = []*snapshot.Run{child}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	out.Result, out.Intervened = r, nil
	if in := worker.Intervened; in != nil {
		other := record.Intervened{PID: pid + 1, Acts: 1000, Changed: 1000, Rank: snapshot.NoRank} // the training's own
		in.PID, in.Child, in.Rank = pid, true, snapshot.NoRank
		out.Choose([]record.Intervened{other, *in}, "loader worker", snapshot.NoRank)
	}
	return out
}

func TestALeakOfAWorkerIsTriedInIt(t *testing.T) {
	plain := beside(t, program(t, list, 0, 0, nil), 7)
	again := 0.0
	lab := func(_ context.Context, _ string, change Change) (*Run, error) {
		if change.Process != "loader worker" || !change.Intervention.Child {
			t.Errorf("%+v", change)
		}
		if change.Intervention.Kind == record.Count {
			return beside(t, program(t, list, 1, again, nil), 9), nil
		}
		return beside(t, program(t, list, int64(change.Intervention.From), 1, nil), 8), nil
	}
	found, err := Examine(context.Background(), plain, lab, Findings{})
	if err != nil || found.Verdict() != diff.Leak || found.More != 0 || len(found.Tried) != 1 || found.Tried[0].Verdict != Proven {
		t.Fatalf("%v: %+v", err, found)
	}
	if page := PageOf(found, "memdiag"); !strings.Contains(page.Locate, "in loader worker 0") {
		t.Error(page.Locate)
	}
	again = 1
	found, err = Examine(context.Background(), plain, lab, Findings{})
	if err != nil || found.Tried[0].Verdict != Open || !strings.Contains(found.Tried[0].Why, "no process like loader worker 0 leaks") {
		t.Errorf("%v: %+v", err, found.Tried)
	}
}

func TestTheRankThatLeaksIsAsked(t *testing.T) {
	var r Run
	r.Choose([]record.Intervened{{Rank: 0, Changed: 9}, {Rank: 1, Changed: 3}, {Rank: 1, Child: true, Changed: 99}}, "", 1)
	if r.Intervened == nil || r.Intervened.Changed != 3 {
		t.Errorf("%+v", r.Intervened)
	}
}
