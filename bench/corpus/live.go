package corpus

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// Live is the corpus as it is watched: a snapshot at each step, later at each second and so on, as package record's agent takes
// them, and a look at each.
func Live() View {
	return View{Name: "live", About: "a snapshot each step, then ever fewer, of which the last 32 are kept", marks: doubling, see: hideOwners}
}

// kept is how many snapshots a recording keeps: when there are more, every second one goes.
const kept = 32

// doubling are the steps at which such a recording takes snapshots.
func doubling(steps int64, _ *rand.Rand) []int64 {
	marks := []int64{0}
	for every, in := int64(1), 1; marks[len(marks)-1]+every <= steps; {
		marks = append(marks, marks[len(marks)-1]+every)
		if in++; in > kept {
			every *= 2
			in = in/2 + 1
		}
	}
	return marks
}

// folderAt are the snapshots that a recording still has when the last of all has been taken.
func folderAt(all []*snapshot.Snapshot) []*snapshot.Snapshot {
	for every := int64(1); ; every *= 2 {
		of := slices.DeleteFunc(slices.Clone(all), func(s *snapshot.Snapshot) bool { return s.Mark.Step%every != 0 })
		if len(of) <= kept {
			return of
		}
	}
}

// alarmRule raises alarms on the run that it has seen so far, once for each look.
type alarmRule struct {
	name string
	new  func() func(*diff.Result) []*diff.Finding // nil findings stand for the total
}

// total flags all that a run holds.
var total = []*diff.Finding{nil}

// alarmRules are memdiag's own, its verdict asked for at each look, and those that are widespread.
func alarmRules() []alarmRule {
	return []alarmRule{
		{"memdiag watch", func() func(*diff.Result) []*diff.Finding {
			w := live.New()
			return func(r *diff.Result) (out []*diff.Finding) {
				for _, s := range w.Look(r) {
					if s.State == live.Alarming {
						out = append(out, s.Finding)
					}
				}
				return out
			}
		}},
		{"diff at each look", func() func(*diff.Result) []*diff.Finding {
			return func(r *diff.Result) (out []*diff.Finding) {
				for i := range r.Findings {
					if r.Findings[i].Verdict == diff.Leak {
						out = append(out, &r.Findings[i])
					}
				}
				return out
			}
		}},
		{"total rose 5 times in a row", func() func(*diff.Result) []*diff.Finding {
			rises, before := 0, 0.
			return func(r *diff.Result) []*diff.Finding {
				now := lastTotal(r)
				if rises++; now <= before {
					rises = 0
				}
				if before = now; rises >= 5 {
					return total
				}
				return nil
			}
		}},
		{"total 1 % over that at step 10", func() func(*diff.Result) []*diff.Finding {
			start := 0.
			return func(r *diff.Result) []*diff.Finding {
				now := lastTotal(r)
				if r.Last.Mark.Step <= warmSteps {
					start = now
				}
				if now > 1.01*start {
					return total
				}
				return nil
			}
		}},
		{"predict_linear of 30 looks, full in 4 times the run", func() func(*diff.Result) []*diff.Finding {
			var x, y []float64
			return func(r *diff.Result) []*diff.Finding {
				x, y = append(x, float64(r.Last.Mark.Step)), append(y, lastTotal(r))
				from := max(0, len(x)-30)
				slope := leastSquares(x[from:], y[from:])
				// The limit is twice what is held after warm-up, which leaves as much room as a careful user does.
				limit := 2 * y[min(len(y)-1, warmSteps)]
				if r.Last.Mark.Step > warmSteps && y[len(y)-1]+slope*4*x[len(x)-1] > limit {
					return total
				}
				return nil
			}
		}},
	}
}

// warmSteps is after how many steps the rules on totals begin.
const warmSteps = 10

func lastTotal(r *diff.Result) (sum float64) {
	for _, d := range r.Last.Devices {
		sum += float64(d.Meters.Allocated)
	}
	return sum
}

// Watched is one run that was watched, and the step of each rule's first alarm that is right where the run leaks; 0 for none.
type Watched struct {
	*Run
	alarms []int64
}

// Watch looks at runs at each of their snapshots, as many at a time as there are processors.
func Watch(ctx context.Context, runs []*Run, progress func(done int64, all int)) ([]Watched, error) {
	out := make([]Watched, len(runs))
	err := each(ctx, runs, progress, func(i int, r *Run) (err error) {
		out[i] = Watched{Run: r}
		out[i].alarms, err = r.watch(ctx)
		return err
	})
	return out, err
}

func (r *Run) watch(ctx context.Context) ([]int64, error) {
	whole, err := r.Record(ctx)
	if err != nil {
		return nil, err
	}
	var rules []func(*diff.Result) []*diff.Finding
	for _, rule := range alarmRules() {
		rules = append(rules, rule.new())
	}
	alarms := make([]int64, len(rules))
	for i := range whole.Snapshots {
		run := *whole
		run.Snapshots = folderAt(whole.Snapshots[:i+1])
		n := len(run.Snapshots)
		if n < 3 || run.Snapshots[n-1] != whole.Snapshots[i] {
			continue
		}
		result, err := diff.Analyze(&run, diff.ByTrend)
		if err != nil {
			return nil, err
		}
		for j, rule := range rules {
			right := slices.ContainsFunc(rule(result), func(f *diff.Finding) bool { return f == nil || !r.Leaks() || r.throughRows(f) })
			if right && alarms[j] == 0 {
				alarms[j] = max(1, run.Snapshots[n-1].Mark.Step)
			}
		}
	}
	return alarms, nil
}

// throughRows says whether a finding is of a stack through a line that leaks.
func (r *Run) throughRows(f *diff.Finding) bool {
	var one flag
	for _, row := range f.Rows {
		one.stacks = append(one.stacks, row.Frames)
	}
	return r.through(one)
}

// LiveText writes for each rule how soon it tells leaks, and its false alarms.
func LiveText(w io.Writer, runs []Watched) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	tell(table, "rule\tleaks reported\tof one a step\tat step: median\tworst\tfalse alarms\tfirst false: median step\n")
	var wrong []string
	for j, rule := range alarmRules() {
		var leaks, told, every, toldEvery, healthy int
		var steps, false_ []int64
		for _, r := range runs {
			at := r.alarms[j]
			switch {
			case r.Leaks():
				leaks++
				steady := r.eachStep()
				if steady {
					every++
				}
				if at > 0 {
					told++
					if steady {
						toldEvery++
						steps = append(steps, at)
					}
				}
			default:
				healthy++
				if at > 0 {
					false_ = append(false_, at)
					if j == 0 {
						wrong = append(wrong, fmt.Sprintf("  %s %s, seed %d, repaired %v: step %d of %d", r.Workload.ID, r.Workload.Alias, r.Seed, r.Fixed, at, r.truth.Steps))
					}
				}
			}
		}
		tell(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", rule.name, of(told, leaks), of(toldEvery, every), middling(steps), worst(steps), of(len(false_), healthy), middling(false_))
	}
	_ = table.Flush()
	if len(wrong) > 0 {
		fmt.Fprintf(&b, "\nfalse alarms of memdiag watch:\n%s\n", strings.Join(wrong, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// eachStep reports whether the run leaks a block or more at each step, from the first on.
func (r *Run) eachStep() bool {
	return slices.ContainsFunc(r.truth.Growth, func(g workload.Growth) bool {
		return g.Every == 1 && g.First <= 1 && g.Event == workload.PerStep && g.Shape == workload.Linear
	})
}

func middling(steps []int64) string {
	if len(steps) == 0 {
		return "-"
	}
	slices.Sort(steps)
	return fmt.Sprint(steps[len(steps)/2])
}

func worst(steps []int64) string {
	if len(steps) == 0 {
		return "-"
	}
	return fmt.Sprint(slices.Max(steps))
}
