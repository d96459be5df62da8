package doctor

import (
	"fmt"
	"math"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// idle says why a changed run proves nothing although the growth is gone, a clause: it did less of the program's work, or a second
// unchanged run does not grow either. It is "" if the run did the work. again may be nil.
func (t *Tried) idle(leak *Leak, plain, again *Run) string {
	changed := t.Run.Result
	second := (*diff.Result)(nil)
	if again != nil {
		second = again.Result
	}
	base := leak.judged(plain.Result)
	// For a graph that is retained, one run may show the size of its nodes and another only their number. If the second run still
	// leaks, its rate therefore does not count.
	if second != nil {
		grown, why := leak.again(again)
		if why != "" {
			return why
		}
		if c := checkOf(baseline.Verify(base, grown), leak.Finding); c != nil && c.Answer != baseline.Remains && c.After.Value < stays*c.Before.Value {
			return "a second unchanged run grows less, too, so the change proves nothing: " + report.CheckText(c)
		}
	}
	if was, is := stepsOf(plain.Result), stepsOf(changed); fewer(is, was, second, stepsOf) {
		return fmt.Sprintf("the program does less with the change: it takes %d steps, and %d without", is, was)
	}
	if was, is := lossesOf(plain.Result), lossesOf(changed); fewer(is, was, second, lossesOf) {
		return fmt.Sprintf("the program does less with the change: it has %d losses, and %d without", is, was)
	}
	if why := insane(plain.Result.Run().Losses, changed.Run().Losses); why != "" {
		return why
	}
	if t.Kind == record.Switch || leak.Finding == nil {
		return "" // a part that is off cannot be reached, and growth without a line has none
	}
	there := changed
	if leak.child() != nil {
		var err error
		if there, err = diff.DefaultOptions().Analyze(leak.within(&t.Run)); err != nil {
			return err.Error()
		}
	}
	share, why := baseline.Reached(base, there, leak.Finding)
	switch {
	case why != "":
		return "nothing shows that the line that leaks still ran: " + why
	case share < stays:
		return fmt.Sprintf("the line that leaks ran less often with the change: %.0f %% as often", 100*share)
	}
	return ""
}

// fewer reports whether a changed run has fewer of something than the run before. If two unchanged runs differ, as for a program that
// ends by time, fewer means less than half.
func fewer(is, was int, second *diff.Result, count func(*diff.Result) int) bool {
	if second == nil || count(second) == was {
		return is < was
	}
	return 2*is < min(was, count(second))
}

// stepsOf is how many steps a run took. For a killed run it is known from the last snapshot only.
func stepsOf(r *diff.Result) int {
	return int(max(r.Run().Info.Steps, r.Last.Mark.Step, 0))
}

func lossesOf(r *diff.Result) int {
	if l := r.Run().Losses; l != nil {
		return len(l.Backward) + len(l.Marked)
	}
	return 0
}

// insane says why losses are not those of a working program, a clause, unless they are the same without the change; "" if nothing is
// wrong.
func insane(before, after *snapshot.Losses) string {
	if before == nil || after == nil {
		return ""
	}
	for _, of := range [][2][]snapshot.Loss{{before.Marked, after.Marked}, {before.Backward, after.Backward}} {
		was, is := of[0], of[1]
		if at := notFinite(is); at >= 0 && notFinite(was) < 0 {
			return fmt.Sprintf("with the change its losses are not finite from step %d on: %v", is[at].Step, is[at].Value)
		}
		if still(is) && !still(was) {
			return fmt.Sprintf("with the change its losses stay at %v; without it they change", is[0].Value)
		}
	}
	return ""
}

// notFinite is the index of the first loss that is infinite or not a number; -1 for none.
func notFinite(losses []snapshot.Loss) int {
	for i, l := range losses {
		if math.IsNaN(l.Value) || math.IsInf(l.Value, 0) {
			return i
		}
	}
	return -1
}

// still reports whether there are losses, and all are equal.
func still(losses []snapshot.Loss) bool {
	for _, l := range losses {
		if l.Value != losses[0].Value {
			return false
		}
	}
	return len(losses) > 1
}

// ended says how a changed run ended differently from the unchanged program, a clause; "" if it did not. If the unchanged program died
// from memory, a changed run may also end well.
func (r *Run) ended(plain *Run) string {
	if r.ExitCode == plain.ExitCode || r.ExitCode == 0 && plain.Died != "" {
		return ""
	}
	text := fmt.Sprintf("with the change the program ends with code %d", r.ExitCode)
	if r.Said != "" {
		text += ": " + r.Said
	}
	return text
}
