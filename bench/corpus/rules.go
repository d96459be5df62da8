package corpus

import (
	"math"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// rule is a way to tell a leak, as it would be used: it sees a run until now.
type rule struct {
	name  string
	judge func(*snapshot.Run) (opinion, error)
}

// opinion is what a rule takes for leaks, and of what it says that it cannot tell;
// the largest growth first.
type opinion struct{ leaks, undecided []flag }

// flag is one thing that grows, by what a rule says of it.
type flag struct {
	stacks [][]snapshot.Frame // of all that belongs to it; nil where the rule looks at totals
	named  *snapshot.Frame    // the line that is named first; nil for none
	cause  string             // "" where the rule has none
	holder string             // path of what keeps it; "" where the rule knows none
	hashes []snapshot.Hash    // of the stacks; nil but of memdiag's own
	more   diff.More          // after how much more it is said to be decided
	// The rest of memdiag's own: what its verdict rests on, its rate, and what it holds.
	evidence diff.Evidence
	rate     diff.Rate
	held     snapshot.Bytes
}

// best is the place among rules of the best that is not memdiag's own: by docs/benchmarks.md
// floors of 5 windows.
const best = 5

// rules are memdiag's own, and those that it is to be compared with.
func rules() []rule {
	return []rule{
		own("memdiag"),
		{"handbook, first half", func(run *snapshot.Run) (opinion, error) {
			return analyzed(byHandbook(), pairOf(run, 0, middle(run)))
		}},
		{"handbook, second half", func(run *snapshot.Run) (opinion, error) {
			return analyzed(byHandbook(), pairOf(run, middle(run), len(run.Snapshots)-1))
		}},
		{"two snapshots, bytes by stack", grownBytes},
		{"Mann–Kendall by stack, p < 0.05", mannKendallAlone},
		{"floors of 5 windows by stack", floorsRise},
		{"birth steps alive, floors of 5", birthStepsRise},
		{"total grew by more than 1 %", totalGrew},
		{"line through the total, R² ≥ 0.7", lineFits},
	}
}

// middle is the snapshot in the middle of a run.
func middle(run *snapshot.Run) int { return len(run.Snapshots) / 2 }

// pairOf is a run of two of the snapshots.
func pairOf(run *snapshot.Run, first, last int) *snapshot.Run {
	return &snapshot.Run{Snapshots: []*snapshot.Snapshot{run.Snapshots[first], run.Snapshots[last]}}
}

// own is memdiag's rule without some of its parts.
func own(name string, without ...string) rule {
	options := diff.DefaultOptions()
	options.Without = without
	return rule{name, func(run *snapshot.Run) (opinion, error) { return analyzed(options, run) }}
}

func byHandbook() diff.Options {
	options := diff.DefaultOptions()
	options.Rule = diff.ByHandbook
	return options
}

func analyzed(options diff.Options, run *snapshot.Run) (o opinion, err error) {
	result, err := options.Analyze(run)
	if err != nil {
		return o, err
	}
	for _, f := range result.Findings {
		one := flag{more: f.More, evidence: f.Evidence, rate: f.Rate, held: f.After().Bytes}
		for _, row := range f.Rows {
			one.stacks = append(one.stacks, row.Frames)
			one.hashes = append(one.hashes, row.Hash)
		}
		if f.Headline >= 0 {
			one.named = &f.Rows[0].Frames[f.Headline]
		}
		if f.Cause != nil {
			one.cause = f.Cause.ID
		}
		if f.Holder != nil {
			one.holder = f.Holder.Path
		}
		switch f.Verdict {
		case diff.Leak:
			o.leaks = append(o.leaks, one)
		case diff.Inconclusive:
			o.undecided = append(o.undecided, one)
		}
	}
	return o, nil
}

// rowFlag flags one stack.
func rowFlag(row *diff.Row) flag {
	f := flag{stacks: [][]snapshot.Frame{row.Frames}}
	if at := frame.Headline(row.Frames); at >= 0 {
		f.named = &row.Frames[at]
	}
	return f
}

// byStack flags every stack of the first and the last snapshot that leaks says yes
// to.
func byStack(run *snapshot.Run, leaks func(*diff.Row) bool) opinion {
	var o opinion
	rows := series.Pair(run.Snapshots[0], run.Snapshots[len(run.Snapshots)-1])
	for i := range rows {
		if leaks(&rows[i]) {
			o.leaks = append(o.leaks, rowFlag(&rows[i]))
		}
	}
	return o
}

// grownBytes flags every stack with more bytes at the end than in the middle,
// which is what pprof -diff_base shows.
func grownBytes(run *snapshot.Run) (opinion, error) {
	return byStack(pairOf(run, middle(run), len(run.Snapshots)-1), func(row *diff.Row) bool { return row.Growth().Bytes > 0 }), nil
}

// mannKendallAlone flags every stack whose bytes rise over the snapshots behind
// the first, by the plain test.
func mannKendallAlone(run *snapshot.Run) (opinion, error) {
	series := series.Collect(&snapshot.Run{Snapshots: run.Snapshots})
	return byStack(run, func(row *diff.Row) bool {
		site := series.Site(row)
		if site == nil {
			return false
		}
		t := trend.MannKendall(floats(site.Bytes[1:]))
		return t.Z > 0 && t.P < 0.05
	}), nil
}

// floorWindows is into how many windows the rules on floors cut a run.
const floorWindows = 5

// floorsRise flags every stack of which the least that is live, blocks or bytes,
// is more in each window than in the one before. The first tenth does not count.
func floorsRise(run *snapshot.Run) (opinion, error) {
	series := series.Collect(run)
	x := series.Axis.X
	warm := max(1, len(x)/10)
	rise := func(y []float64) bool {
		_, floors := trend.Floors(x[warm:], y[warm:], floorWindows)
		return rising(floors)
	}
	return byStack(run, func(row *diff.Row) bool {
		site := series.Site(row)
		return site != nil && (rise(floats(site.Bytes)) || rise(floats(site.Blocks)))
	}), nil
}

// birthStepsRise is floorsRise for the number of different steps in which a
// stack's live blocks were born.
func birthStepsRise(run *snapshot.Run) (opinion, error) {
	type site struct {
		kind  snapshot.DeviceKind
		index int
		stack snapshot.Hash
	}
	type birth struct {
		site
		step int64
	}
	distinct := make(map[site][]float64) // by snapshot
	x := make([]float64, len(run.Snapshots))
	for at, s := range run.Snapshots {
		x[at] = float64(s.Mark.Step)
		seen := make(map[birth]bool)
		for row, state := range s.Blocks.State {
			if state != snapshot.Live {
				continue
			}
			d := s.Devices[s.Segments[s.Blocks.Segment[row]].Device]
			own := site{d.Kind, d.Index, s.Stacks.Hash(s.Blocks.Stack[row])}
			b := birth{own, snapshot.NoStep}
			if s.Blocks.BirthStep != nil {
				b.step = s.Blocks.BirthStep[row]
			}
			if !seen[b] {
				seen[b] = true
				if distinct[own] == nil {
					distinct[own] = make([]float64, len(run.Snapshots))
				}
				distinct[own][at]++
			}
		}
	}
	return byStack(run, func(row *diff.Row) bool {
		y := distinct[site{row.Device.Kind, row.Device.Index, row.Hash}]
		if y == nil {
			return false // blocks without a stack
		}
		_, floors := trend.Floors(x[1:], y[1:], floorWindows)
		return rising(floors)
	}), nil
}

// rising reports whether every value is more than the one before, and there are two at
// least.
func rising(y []float64) bool {
	for i := 1; i < len(y); i++ {
		if y[i] <= y[i-1] {
			return false
		}
	}
	return len(y) > 1
}

func floats[T ~int64](values []T) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// totals are all live bytes behind the training steps of a run's phase, without
// its first tenth.
func totals(run *snapshot.Run) (steps, bytes []float64) {
	series := series.Collect(run)
	x := series.Axis.X
	for i := range x {
		var sum snapshot.Bytes
		for _, meters := range series.Meters {
			sum += meters[i].Allocated
		}
		bytes = append(bytes, float64(sum))
	}
	warm := max(1, len(x)/10)
	return x[warm:], bytes[warm:]
}

func totalGrew(run *snapshot.Run) (opinion, error) {
	_, bytes := totals(run)
	return totalFlag(bytes[len(bytes)-1] > 1.01*bytes[0]), nil
}

func lineFits(run *snapshot.Run) (opinion, error) {
	r := correlation(totals(run))
	return totalFlag(r > 0 && r*r >= 0.7), nil
}

// totalFlag flags the total, or nothing.
func totalFlag(leaks bool) opinion {
	if leaks {
		return opinion{leaks: []flag{{}}}
	}
	return opinion{}
}

// correlation is Pearson's; its square is the R² of a line through the points. It
// is 0 where one of the two does not vary.
func correlation(x, y []float64) float64 {
	xy, xx, yy := moments(x, y)
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// leastSquares is the slope of that line; 0 where x does not vary.
func leastSquares(x, y []float64) float64 {
	xy, xx, _ := moments(x, y)
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// moments are the sums of products of what x and y differ by from their means.
func moments(x, y []float64) (xy, xx, yy float64) {
	n := float64(len(x))
	var meanX, meanY float64
	for i := range x {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	return xy, xx, yy
}
