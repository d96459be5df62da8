package baseline

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Doubled compares a run with another of the same program and half the steps: a leak holds more at the end of the
// longer run.
type Doubled struct {
	Half, Whole snapshot.Mark // marks of the last snapshots
	More        []diff.Row    // sites with more bytes in the longer run, the most first
	// Unconfirmed are the leaks of the longer run with less than half of the growth that their rate implies.
	Unconfirmed []*diff.Finding
	// Unexplained are the sites with at least 10 more blocks that belong to no finding.
	Unexplained []diff.Row
}

// Double compares the longer run's result with the last snapshot of the run of half its steps.
func Double(half *snapshot.Snapshot, whole *diff.Result) *Doubled {
	d := &Doubled{Half: half.Mark, Whole: whole.Last.Mark}
	type site struct {
		device snapshot.DeviceKind
		index  int
		stack  snapshot.Hash
	}
	of := func(row *diff.Row) site { return site{row.Device.Kind, row.Device.Index, row.Hash} }
	grown := make(map[site]snapshot.Bytes)
	for _, row := range series.Pair(half, whole.Last) {
		if row.Growth().Bytes > 0 {
			d.More = append(d.More, row)
			grown[of(&row)] = row.Growth().Bytes
		}
	}
	slices.SortStableFunc(d.More, func(a, b diff.Row) int { return cmp.Compare(b.Growth().Bytes, a.Growth().Bytes) })
	told := make(map[site]bool)
	steps := float64(d.Whole.Step - d.Half.Step)
	for i := range whole.Findings {
		f := &whole.Findings[i]
		var more snapshot.Bytes
		for _, row := range f.Rows {
			told[of(row)] = true
			more += grown[of(row)]
		}
		least := 0.0
		if f.Rate.Unit == diff.Step {
			least = f.Rate.Bytes.Low * steps / 2
		}
		if f.Verdict == diff.Leak && (more == 0 || float64(more) < least) {
			d.Unconfirmed = append(d.Unconfirmed, f)
		}
	}
	for _, row := range d.More {
		if row.Growth().Blocks >= enough && !told[of(&row)] {
			d.Unexplained = append(d.Unexplained, row)
		}
	}
	return d
}
