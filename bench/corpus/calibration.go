package corpus

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// calibration is how often sure verdicts are right, over the ends of all parts of a run.
type calibration struct {
	// Leaks are those on strong evidence or proof, Weak those on weak evidence. They hold if
	// the run leaks there.
	Leaks decided `json:"strong"`
	Weak  decided `json:"weak"`
	// Promises are of undecided findings: that they are decided after so much more.
	Promises decided `json:"promises"`
	// Intervals are those of 95 % for the blocks that a leak adds each step, where the program
	// adds the same each time. They hold if that number lies within.
	Intervals decided `json:"intervals"`
	// Errors are those of what leaks hold at the run's end, by their rate at half time, as shares
	// of what they grew by.
	Errors []float64 `json:"forecast_errors"`
}

func (c *calibration) add(d calibration) {
	for _, both := range []struct{ a, b *decided }{
		{&c.Leaks, &d.Leaks}, {&c.Weak, &d.Weak}, {&c.Promises, &d.Promises}, {&c.Intervals, &d.Intervals},
	} {
		both.a.add(*both.b)
	}
	c.Errors = append(c.Errors, d.Errors...)
}

// held counts one that was made.
func (d *decided) count(kept bool) {
	d.Made++
	if kept {
		d.Kept++
	}
}

// calibrate holds what was said at the end of each part against the truth.
func (r *Run) calibrate(whole *snapshot.Run, parts []opinion) calibration {
	c := calibration{Promises: promised(r.marks, parts)}
	perStep, known := r.perStep()
	for _, said := range parts {
		for i := range said.leaks {
			f := &said.leaks[i]
			kept := r.Leaks() && r.through(*f)
			if f.evidence == diff.Weak {
				c.Weak.count(kept)
			} else {
				c.Leaks.count(kept)
			}
			if s := f.rate.Blocks; known && kept && s.N > 2 && len(f.hashes) == 1 && f.rate.Unit == diff.Step {
				const rounding = 1e-9
				c.Intervals.count(s.Low <= perStep+rounding && perStep <= s.High+rounding)
			}
		}
	}
	half, last := len(parts)/2, len(parts)-1
	for _, f := range parts[half].leaks {
		if slope := f.rate.Bytes; r.Leaks() && r.through(f) && slope.N > 2 {
			held := heldOf(whole.Snapshots[last], f.hashes)
			grown := float64(held - f.held)
			length, ok := distance(whole.Snapshots[half].Mark, whole.Snapshots[last].Mark, f.rate.Unit)
			if ok && grown > 0 {
				c.Errors = append(c.Errors, math.Abs(slope.Value*length-grown)/grown)
			}
		}
	}
	return c
}

// wilson is the 95 % interval of a share (Wilson 1927).
func wilson(d decided) (low, high float64) {
	const z = 1.96
	n, share := float64(d.Made), float64(d.Kept)/float64(d.Made)
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return middle - half, middle + half
}

// perStep is how many blocks the program leaks each step, where one line leaks as many each time.
func (r *Run) perStep() (blocks float64, known bool) {
	if !r.Leaks() || len(r.truth.Growth) != 1 || r.View.resumes {
		return 0, false
	}
	g := r.truth.Growth[0]
	if g.Event != workload.PerStep || g.Shape != workload.Linear || g.Unit != "" || g.Meter == workload.Reserved {
		return 0, false
	}
	return float64(g.Blocks) / float64(g.Every), true
}

// distance is how far two marks lie apart; false where the unit does not tell.
func distance(a, b snapshot.Mark, unit diff.Unit) (float64, bool) {
	switch unit {
	case diff.Step:
		return float64(b.Step - a.Step), true
	case diff.Second:
		return b.Time.Sub(a.Time).Seconds(), true
	}
	return 0, false
}

// heldOf is what stacks hold in a snapshot.
func heldOf(s *snapshot.Snapshot, stacks []snapshot.Hash) snapshot.Bytes {
	held := snapshot.Bytes(0)
	for _, site := range s.Sites() {
		if slices.Contains(stacks, site.Hash) {
			held += site.Bytes
		}
	}
	return held
}

// CalibrationText writes a row for each view, and one for all.
func CalibrationText(w io.Writer, plan Plan, runs []*Run) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	tell(table, "view\tstrong leaks that are leaks\tweak ones\tdecided when said\trate within its 95 %% interval\tforecast at half time: median error\tbeyond 25 %%\n")
	row := func(name string, c calibration) {
		tell(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, share(c.Leaks), share(c.Weak), share(c.Promises), share(c.Intervals), c.medianError(), share(c.missed()))
	}
	var all calibration
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		c := scores(of)[0].Calibration
		row(of[0].View.Name, c)
		all.add(c)
	}
	if len(plan.Views) > 1 {
		row("all", all)
	}
	_ = table.Flush() // a Builder takes all
	_, err := io.WriteString(w, b.String())
	return err
}

func share(d decided) string {
	if d.Made == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%.0f %%)", d, 100*float64(d.Kept)/float64(d.Made))
}

func (c *calibration) medianError() string {
	if len(c.Errors) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(c.Errors))
	return fmt.Sprintf("%.1f %%", 100*sorted[len(sorted)/2])
}

// missed are the forecasts that were wrong by more than a quarter.
func (c *calibration) missed() decided {
	d := decided{Made: len(c.Errors)}
	for _, e := range c.Errors {
		if e > 0.25 {
			d.Kept++
		}
	}
	return d
}
