package diff

import (
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// containerIndex indexes containers and their rows, for runs with thousands of them.
type containerIndex struct {
	rows    map[onContainer][]*Row
	bounded map[string]*snapshot.Holder // of the last snapshot, by path
	seen    map[string][]seenHolder     // by path, in the order of snapshots
}

type onContainer struct {
	path string
	on   series.DeviceID
}

type seenHolder struct {
	holder *snapshot.Holder
	in     *snapshot.Snapshot
}

// indexed returns the index, which the first call builds.
func (r *Result) indexed() *containerIndex {
	if r.indices != nil {
		return r.indices
	}
	i := &containerIndex{map[onContainer][]*Row{}, map[string]*snapshot.Holder{}, map[string][]seenHolder{}}
	r.indices = i
	for _, s := range r.run.Snapshots {
		for k := range s.Holders {
			h := &s.Holders[k]
			i.seen[h.Path] = append(i.seen[h.Path], seenHolder{h, s})
		}
	}
	for k := range r.Last.Holders {
		if h := &r.Last.Holders[k]; h.Bound > 0 && i.bounded[h.Path] == nil {
			i.bounded[h.Path] = h
		}
	}
	for k := range r.Rows {
		if h := r.container(&r.Rows[k]); h != nil {
			on := onContainer{h.Path, r.Rows[k].On()}
			i.rows[on] = append(i.rows[on], &r.Rows[k])
		}
	}
	return i
}

// container is what holds the row. If that is an item of a container with a bound, such as a tuple in a deque, it is
// the container.
func (r *Result) container(row *Row) *snapshot.Holder {
	h := r.keeper(row)
	if h == nil || h.Bound > 0 {
		return h
	}
	bounded := r.indexed().bounded
	for i, c := range h.Path {
		if g := bounded[h.Path[:i]]; c == '[' && g != nil {
			return g
		}
	}
	return h
}
