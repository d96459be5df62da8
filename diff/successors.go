package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// eachPart is how many consecutive processes count as one, at least, and fewestParts how many such parts can show
// growth.
const eachPart, fewestParts = 2, 9

// growingSuccessors finds processes that follow each other and each take more memory. A short-lived process shows no
// growth alone. All forks of one parent are one kind, since a fork that ends at once has no name yet.
func (r *Result) growingSuccessors(f *forest, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (out []Reserve) {
	groups := make(map[string][]*snapshot.TreeProcess)
	for _, p := range f.others {
		if p.Points[len(p.Points)-1].Time.Before(f.ended) && len(p.Points) < series.Testable {
			kind := KindOf(p.Role)
			if f.shares(p) {
				kind = fmt.Sprintf("forks of %d", p.Parent)
			}
			groups[kind] = append(groups[kind], p)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		of := groups[kind]
		if e := r.grows(f.successors(of, memory)); e != nil && e.Growth >= r.agentsTake(e.Growth, of[len(of)-1]) {
			largest := slices.MaxFunc(of, func(a, b *snapshot.TreeProcess) int {
				return cmp.Compare(memory(&a.Points[len(a.Points)-1]), memory(&b.Points[len(b.Points)-1]))
			})
			e.Processes = &Processes{Role: KindOf(largest.Role), Successive: true}
			out = append(out, *e)
		}
	}
	return out
}

// successors returns the highest memory of consecutive processes, beyond what they inherited from their parents;
// empty if there are too few. A look comes at a random moment of such a short life, so the highest of several
// processes counts.
func (f *forest) successors(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (x, y []float64) {
	parts := min(len(of)/eachPart, series.Windows)
	if parts < fewestParts {
		return nil, nil
	}
	slices.SortStableFunc(of, func(a, b *snapshot.TreeProcess) int { return a.Points[0].Time.Compare(b.Points[0].Time) })
	for n := range parts {
		most, at := 0., 0.
		for _, p := range of[n*len(of)/parts : (n+1)*len(of)/parts] {
			inherited := snapshot.Bytes(0)
			if f.shares(p) {
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

// shares reports whether a process had pages in common with its parent at its first look, and so is a fork.
func (f *forest) shares(p *snapshot.TreeProcess) bool {
	return len(f.common[p]) > 0 && f.common[p][0] > 0
}
