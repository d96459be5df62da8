package main

import (
	"math"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// benchRule is a way to tell a leak, as it would be used: it sees a run until now,
// and flags what it takes for one.
type benchRule struct {
	name  string
	judge func(*snapshot.Run) ([]flag, error)
}

// flag is what a rule takes for a leak, the largest growth first.
type flag struct {
	frames   []snapshot.Frame // nil where the rule looks at totals
	headline int              // index into frames; -1 for none
	cause    string           // "" where the rule has none
}

// benchRules are memdiag's own, and those that it is to be compared with.
func benchRules() []benchRule {
	return []benchRule{
		{"memdiag", func(run *snapshot.Run) ([]flag, error) { return analyzed(run, diff.ByTrend) }},
		{"handbook, first half", func(run *snapshot.Run) ([]flag, error) {
			return analyzed(pairOf(run, 0, middle(run)), diff.ByHandbook)
		}},
		{"handbook, second half", func(run *snapshot.Run) ([]flag, error) {
			return analyzed(pairOf(run, middle(run), len(run.Snapshots)-1), diff.ByHandbook)
		}},
		{"two snapshots, bytes by stack", grownBytes},
		{"Mann–Kendall by stack, p < 0.05", mannKendallAlone},
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

func analyzed(run *snapshot.Run, rule diff.Rule) ([]flag, error) {
	result, err := diff.Analyze(run, rule)
	if err != nil {
		return nil, err
	}
	var flags []flag
	for _, f := range result.Findings {
		if f.Verdict != diff.Leak {
			continue
		}
		named := flag{frames: f.Rows[0].Frames, headline: f.Headline}
		if f.Cause != nil {
			named.cause = f.Cause.ID
		}
		flags = append(flags, named)
	}
	return flags, nil
}

// grownBytes flags every stack with more bytes at the end than in the middle,
// which is what pprof -diff_base shows.
func grownBytes(run *snapshot.Run) ([]flag, error) {
	var flags []flag
	for _, row := range diff.Pair(run.Snapshots[middle(run)], run.Snapshots[len(run.Snapshots)-1]) {
		if row.Growth().Bytes > 0 {
			flags = append(flags, flag{frames: row.Frames, headline: diff.Headline(row.Frames)})
		}
	}
	return flags, nil
}

// mannKendallAlone flags every stack whose bytes rise over the snapshots behind
// the first, by the plain test.
func mannKendallAlone(run *snapshot.Run) ([]flag, error) {
	series := diff.Collect(&snapshot.Run{Snapshots: run.Snapshots})
	rows := diff.Pair(run.Snapshots[0], run.Snapshots[len(run.Snapshots)-1])
	var flags []flag
	for i := range rows {
		site := series.Site(&rows[i])
		if site == nil {
			continue
		}
		var bytes []float64
		for _, b := range site.Bytes[1:] {
			bytes = append(bytes, float64(b))
		}
		if t := trend.MannKendall(bytes); t.Z > 0 && t.P < 0.05 {
			flags = append(flags, flag{frames: rows[i].Frames, headline: diff.Headline(rows[i].Frames)})
		}
	}
	return flags, nil
}

// totals are all live bytes behind the training steps of a run's phase, without
// its first tenth.
func totals(run *snapshot.Run) (steps, bytes []float64) {
	series := diff.Collect(run)
	x, _ := series.X()
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

func totalGrew(run *snapshot.Run) ([]flag, error) {
	_, bytes := totals(run)
	if bytes[len(bytes)-1] > 1.01*bytes[0] {
		return []flag{{headline: -1}}, nil
	}
	return nil, nil
}

func lineFits(run *snapshot.Run) ([]flag, error) {
	if r := correlation(totals(run)); r > 0 && r*r >= 0.7 {
		return []flag{{headline: -1}}, nil
	}
	return nil, nil
}

// correlation is Pearson's; its square is the R² of a line through the points. It
// is 0 where one of the two does not vary.
func correlation(x, y []float64) float64 {
	n := float64(len(x))
	var meanX, meanY float64
	for i := range x {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}
