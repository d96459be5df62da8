package doctor

import (
	"fmt"
	"math"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/gate"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Cycle is one run of a program that is started repeatedly.
type Cycle struct {
	Number   int      `json:"cycle"`
	Dir      string   `json:"dir"`
	Seconds  float64  `json:"seconds"`
	ExitCode int      `json:"exit_code"`
	Peak     int64    `json:"peak_bytes,omitempty"`   // peak of the process; 0 if it was not measured
	Growth   int64    `json:"growth_bytes,omitempty"` // growth of the process from warm-up to the end
	Left     int64    `json:"left_bytes"`             // shared memory that did not exist before the cycle
	Leaks    int      `json:"leaks"`
	Verdict  string   `json:"verdict"` // "fine", "leak", "over budget", "failed", "undecided"
	Why      []string `json:"why,omitempty"`
}

// The verdicts of a cycle, the worst last.
const (
	CycleFine      = "fine"
	CycleUndecided = "undecided"
	CycleLeak      = "leak"
	CycleOver      = "over budget"
	CycleFailed    = "failed"
)

// CycleOf judges a cycle. left is the shared memory that it left.
func CycleOf(number int, run *Run, budgets []budget.Budget, left snapshot.Bytes, now time.Time) (Cycle, error) {
	c := Cycle{Number: number, Dir: run.Dir, Seconds: seconds(run.Took), ExitCode: run.ExitCode, Left: int64(max(0, left)), Verdict: CycleFine}
	if r := run.Result; r == nil {
		c.Verdict, c.Why = CycleUndecided, append(c.Why, run.Why)
	} else if err := c.measure(r, budgets, now); err != nil {
		return c, err
	}
	if run.ExitCode != 0 {
		c.Verdict = CycleFailed
		why := fmt.Sprintf("it ended with code %d", run.ExitCode)
		if run.Said != "" {
			why += ": " + run.Said
		}
		c.Why = append(c.Why, why)
	}
	return c, nil
}

// measure judges a cycle as a gate does.
func (c *Cycle) measure(r *diff.Result, budgets []budget.Budget, now time.Time) error {
	judging := gate.Options{Budgets: budgets}
	rank, err := judging.Judge(r.Run(), diff.Options{}, func(*snapshot.Run, diff.Options) (*diff.Result, error) { return r, nil })
	if err != nil {
		return err
	}
	children := rank.Children()
	ranks := append([]gate.Rank{rank}, children...)
	var judged []baseline.Ranked
	for i := range ranks {
		if of := ranks[i].Result; of != nil {
			judged = append(judged, baseline.Ranked{Rank: ranks[i].Number, Result: of})
			c.Leaks += of.Leaks()
		}
	}
	d := judging.Decide(ranks, (&baseline.File{}).Judge(judged, now))
	switch d.Verdict {
	case diff.Leak:
		c.Verdict = CycleLeak
	case report.OverBudget:
		c.Verdict = CycleOver
	case diff.Inconclusive:
		c.Verdict = CycleUndecided
	}
	for _, o := range rank.Budgets {
		if o.Broken() || o.Unchecked != "" {
			c.Why = append(c.Why, o.Said())
		}
	}
	if c.Verdict == CycleLeak || c.Verdict == CycleUndecided {
		c.Why = append(d.Headlines, c.Why...)
	}
	c.Peak, c.Growth = used(r, budget.Peak), used(r, budget.Growth)
	return nil
}

// used is the process's figure that a budget would be compared with; 0 for none.
func used(r *diff.Result, meter budget.Meter) int64 {
	all := budget.Budget{Meter: meter, Where: "process", Bytes: math.MaxInt64}
	for _, o := range budget.Check(r.Run(), []budget.Budget{all}, 0) {
		if o.Unchecked == "" {
			return int64(o.Used)
		}
	}
	return 0
}

// fewestCycles is the least number of cycles for a trend: if five all rise, the chance of that is 1 in 120.
const fewestCycles = 5

// Across says what grows from cycle to cycle, a sentence each. A restart does not release it: for example a checkpoint that becomes
// larger, or shared memory that stays.
func Across(cycles []Cycle) (out []string) {
	left := int64(0)
	var peaks []float64
	for _, c := range cycles {
		left += c.Left
		if c.Peak > 0 {
			peaks = append(peaks, float64(c.Peak))
		}
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("%s of shared memory stay behind", snapshot.Bytes(left)))
	}
	if len(peaks) >= fewestCycles {
		first, last := peaks[0], peaks[len(peaks)-1]
		if t := trend.MannKendall(peaks); t.S > 0 && t.P < 0.05 && last > 1.02*first {
			out = append(out, fmt.Sprintf("the peak rises from cycle to cycle, from %s to %s", snapshot.Bytes(first), snapshot.Bytes(last)))
		}
	}
	return out
}
