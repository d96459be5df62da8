package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// eachPart is how many processes that follow each other count as one, and fewestParts how many such show growth.
const eachPart, fewestParts = 2, 9

// successors are what processes that follow each other had, each at most, beyond what it had from its parent: one that lives
// shortly shows nothing by itself, and the next may need more. They are empty if too few have ended. A look comes at any moment of
// so short a life, so that the most of several counts.
func (f *forest) successors(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (x, y []float64) {
	var ended []*snapshot.TreeProcess
	for _, p := range of {
		if p.Points[len(p.Points)-1].Time.Before(f.ended) && len(p.Points) < series.Testable {
			ended = append(ended, p)
		}
	}
	parts := min(len(ended)/eachPart, series.Windows)
	if parts < fewestParts {
		return nil, nil
	}
	slices.SortStableFunc(ended, func(a, b *snapshot.TreeProcess) int { return a.Points[0].Time.Compare(b.Points[0].Time) })
	for n := range parts {
		most, at := 0., 0.
		for _, p := range ended[n*len(ended)/parts : (n+1)*len(ended)/parts] {
			inherited := snapshot.Bytes(0)
			if common := f.common[p]; common != nil && common[0] > 0 {
				inherited = f.inherited(p)
			}
			for i := range p.Points {
				most = max(most, float64(memory(&p.Points[i])-inherited))
			}
			at = p.Points[0].Time.Sub(f.began).Seconds()
		}
		x, y = append(x, at), append(y, most)
	}
	return x, y
}
