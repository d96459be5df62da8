package doctor

import (
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// child is the process in which the leak is, if that is recorded beside the one of its rank; else nil.
func (l *Leak) child() *diff.Child {
	if l.Finding != nil {
		return l.Finding.Child
	}
	return nil
}

// judged is the result in which the leak is: the process's own.
func (l *Leak) judged(r *diff.Result) *diff.Result {
	if c := l.child(); c != nil {
		return c.Result
	}
	return r
}

// within is the part of a run that is of a process like the leak's: of several the one that was changed. It is nil for none.
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

// again is what a second run as it is shows of the leak's process, or why it shows nothing, a clause.
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

// Choose sets what became of a change in the process that counts: of a child's one like it, of a rank's that rank's. Of
// several it is the one in which most was changed. kind is of a child, as diff.KindOf has it, or "".
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
