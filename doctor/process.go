package doctor

import (
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// child is the process with the leak, if it is recorded beside the one of its rank; else nil.
func (l *Leak) child() *diff.Child {
	if l.Finding != nil {
		return l.Finding.Child
	}
	return nil
}

// judged is the result of the process with the leak.
func (l *Leak) judged(r *diff.Result) *diff.Result {
	if c := l.child(); c != nil {
		return c.Result
	}
	return r
}

// within is the part of a run for a process like the leak's. If there are several, it is the one that was changed. It is nil for none.
func (l *Leak) within(r *Run) (found *snapshot.Run) {
	c := l.child()
	if c == nil {
		return r.Result.Run()
	}
	for _, other := range r.Result.Run().Children {
		if diff.KindOf(other.Role) != diff.KindOf(c.Role) {
			continue
		}
		if r.Intervened != nil && r.Intervened.PID == other.PID {
			return other
		}
		if found == nil {
			found = other
		}
	}
	return found
}

// again is what a second unchanged run shows about the leak's process, or a clause on why it shows nothing.
func (l *Leak) again(r *Run) (*diff.Result, string) {
	c := l.child()
	if c == nil {
		return r.Result, ""
	}
	for _, other := range r.Result.Children {
		if diff.KindOf(other.Role) == diff.KindOf(c.Role) {
			return other.Result, ""
		}
	}
	return nil, "in a second unchanged run no process like " + c.Role + " leaks, so the change proves nothing"
}

// Choose sets the result of a change from the process that counts: a child of this kind, or the process of this rank. If there are
// several, it takes the one with the most changes. kind is the kind of a child, from diff.KindOf, or "".
func (r *Run) Choose(all []record.Intervened, kind string, rank int) {
	like := make(map[int]bool)
	if r.Result != nil {
		for _, c := range r.Result.Run().Children {
			like[c.PID] = diff.KindOf(c.Role) == kind
		}
	}
	for i := range all {
		in := &all[i]
		if in.Child != (kind != "") || in.Child && !like[in.PID] || rank != snapshot.NoRank && in.Rank != snapshot.NoRank && in.Rank != rank {
			continue
		}
		if now := r.Intervened; now == nil || in.Changed > now.Changed || in.Changed == now.Changed && in.Acts > now.Acts {
			r.Intervened = in
		}
	}
}
