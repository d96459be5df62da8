package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// forest is a tree of processes, grouped by kind.
type forest struct {
	tree         *snapshot.Tree
	all          []*snapshot.TreeProcess
	began, ended time.Time
	others       []*snapshot.TreeProcess // without snapshots
	times        []time.Time             // of all looks, ascending
	kinds        map[string][]*snapshot.TreeProcess
	numbered     map[int][]*snapshot.TreeProcess            // by PID, ascending by their first looks
	common       map[*snapshot.TreeProcess][]snapshot.Bytes // shared pages at each look; nil if there are none
}

func newForest(tree *snapshot.Tree, recorded func(*snapshot.TreeProcess) bool) *forest {
	f := &forest{tree: tree, kinds: make(map[string][]*snapshot.TreeProcess), common: make(map[*snapshot.TreeProcess][]snapshot.Bytes)}
	common := commonPages(tree)
	f.numbered = make(map[int][]*snapshot.TreeProcess)
	held := make(map[string]snapshot.Bytes)
	for i := range tree.Processes {
		p := withoutEnd(&tree.Processes[i])
		f.all, f.common[p] = append(f.all, p), common[i]
		f.numbered[p.PID] = append(f.numbered[p.PID], p)
		for _, point := range p.Points {
			f.times = append(f.times, point.Time)
		}
		if !recorded(p) {
			f.others = append(f.others, p)
			kind, last := KindOf(p.Role), &p.Points[len(p.Points)-1]
			f.kinds[kind] = append(f.kinds[kind], p)
			held[kind] += last.Anonymous + last.Swapped
		}
	}
	slices.SortFunc(f.times, time.Time.Compare)
	f.times = slices.CompactFunc(f.times, time.Time.Equal)
	f.began, f.ended = f.times[0], f.times[len(f.times)-1]
	if len(f.kinds) > mostKinds {
		most := slices.SortedFunc(maps.Keys(held), func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
		for _, kind := range most[mostKinds:] {
			delete(f.kinds, kind)
		}
	}
	return f
}

// withoutEnd is a process with a role, without its last looks if it was exiting then and had freed all its memory.
func withoutEnd(p *snapshot.TreeProcess) *snapshot.TreeProcess {
	n := len(p.Points)
	for n > 1 && p.Points[n-1].Anonymous+p.Points[n-1].Swapped == 0 {
		n--
	}
	if n == len(p.Points) && p.Role != "" {
		return p
	}
	cut := *p
	cut.Role, cut.Points = cmp.Or(p.Role, fmt.Sprintf("process %d", p.PID)), p.Points[:n]
	return &cut
}

// lasts reports whether a process existed near the end: the memory of an ended process has been freed.
func (f *forest) lasts(p *snapshot.TreeProcess) bool {
	return float64(p.Points[len(p.Points)-1].Time.Sub(f.began)) >= toTheEnd*float64(f.ended.Sub(f.began))
}

// ends has the times at which processes of a kind ended, ascending, and the most memory that any process had that
// ended by then.
type ends struct {
	at   []time.Time
	most []snapshot.Bytes
}

func endsOf(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (e ends) {
	last := func(p *snapshot.TreeProcess) *snapshot.ProcessPoint { return &p.Points[len(p.Points)-1] }
	most := snapshot.Bytes(-1)
	for _, p := range slices.SortedFunc(slices.Values(of), func(a, b *snapshot.TreeProcess) int { return last(a).Time.Compare(last(b).Time) }) {
		most = max(most, memory(last(p)))
		e.at, e.most = append(e.at, last(p).Time), append(e.most, most)
	}
	return e
}

// replaced reports whether another process of the kind had ended before this one began, with at least as much memory:
// a pool whose processes are replaced does not take more each time.
func (e ends) replaced(began time.Time, has snapshot.Bytes) bool {
	n, _ := slices.BinarySearchFunc(e.at, began, func(at, began time.Time) int {
		if at.After(began) {
			return 1
		}
		return -1
	})
	return n > 0 && e.most[n-1] >= has
}

// inherited is what a forked process had from its parent. It copies more and more of that as either process writes,
// which does not add to its memory.
func (f *forest) inherited(p *snapshot.TreeProcess) snapshot.Bytes {
	first := &p.Points[0]
	of := f.numbered[p.Parent]
	after, _ := slices.BinarySearchFunc(of, first.Time, func(q *snapshot.TreeProcess, t time.Time) int {
		if q.Points[0].Time.After(t) {
			return 1
		}
		return -1
	})
	if after > 0 {
		points := of[after-1].Points
		at, ok := slices.BinarySearchFunc(points, first.Time, func(at snapshot.ProcessPoint, t time.Time) int { return at.Time.Compare(t) })
		if ok {
			return min(first.Anonymous, points[at].Anonymous)
		}
	}
	return first.Anonymous
}

// together returns what processes held in total at each moment, from the beginning of the first one to the end of the
// last. It is empty if that was long before the end, since they have freed it.
func (f *forest) together(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (x, y []float64) {
	x, y = make([]float64, len(f.times)), make([]float64, len(f.times))
	for i, at := range f.times {
		x[i] = at.Sub(f.began).Seconds()
	}
	first, last := len(x)-1, 0
	for _, p := range of {
		common := f.common[p]
		inherited := f.inherited(p)
		for i := range p.Points {
			at, _ := slices.BinarySearchFunc(f.times, p.Points[i].Time, time.Time.Compare)
			has := memory(&p.Points[i])
			if common != nil && common[i] > 0 {
				has = max(0, has-inherited)
			}
			y[at] += float64(has)
			first, last = min(first, at), max(last, at)
		}
	}
	if x[last] < toTheEnd*x[len(x)-1] {
		return nil, nil
	}
	return x[first : last+1], y[first : last+1]
}
