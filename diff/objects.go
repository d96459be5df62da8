package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// joinObjects makes one finding of a leak and of the growth of other memory that one container holds: of tensors, and of their keys
// and what else its items are made of. The tensors lead if they leak: of objects the line is known from some windows, and of what is
// counted no size.
func (r *Result) joinObjects() {
	joined := make(map[*Row]bool)
	for leads := tensorMemory; leads <= countedMemory; leads++ {
		for i := range r.Findings {
			lead := &r.Findings[i]
			if lead.Verdict != Leak || lead.Against != nil || lead.memory() != leads || joined[lead.Rows[0]] {
				continue
			}
			for k := range r.Findings {
				f := &r.Findings[k]
				mayLeak := f.Verdict == Leak || f.Verdict == Inconclusive && f.Bound == nil
				if !mayLeak || f.Against != nil || joined[f.Rows[0]] || f.memory() == leads || f.memory() == segmentMemory {
					continue
				}
				if heldTogether(lead, f) && lead.Rate.Unit == f.Rate.Unit {
					r.putBehind(lead, f.Rows, f.Rate)
					lead.Beside += f.Growth().Bytes
					joined[f.Rows[0]] = true
				}
			}
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return joined[f.Rows[0]] })
}

// memory is a kind of memory that one container may hold beside others.
type memory int

const (
	tensorMemory  memory = iota
	objectMemory         // on a language's heap
	countedMemory        // items and nodes, whose size nobody knows
	segmentMemory        // of named segments, whose handles are joined by themselves
)

func (f *Finding) memory() memory {
	switch {
	case ofSegments(f):
		return segmentMemory
	case onLanguageHeap(f.Rows):
		return objectMemory
	case f.Rows[0].Device.Kind == snapshot.Items || f.ofNodes():
		return countedMemory
	}
	return tensorMemory
}

// putBehind adds rows that hang on a leak's holder to it, with their rate. They lie in the process: a device of its own fills by
// the leak's blocks alone.
func (r *Result) putBehind(f *Finding, rows []*Row, rate Rate) {
	f.Behind = append(f.Behind, rows...)
	f.Rate.Bytes = sum(f.Rate.Bytes, rate.Bytes)
	if f.Rows[0].Device.Kind.InProcess() && (f.RunsOut != nil || f.ofNodes()) {
		f.RunsOut = r.forecast(f.Rows[0], f.Rate)
	}
}

// leakHeldWith is the leak that the container of a finding of items holds; nil for none. Tensors come before objects.
func (r *Result) leakHeldWith(items *Finding) (lead *Finding) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict == Leak && f.Against == nil && f.Nodes == nil && f.Rate.Unit == items.Rate.Unit && heldTogether(f, items) && (lead == nil || onLanguageHeap(lead.Rows) && !onLanguageHeap(f.Rows)) {
			lead = f
		}
	}
	return lead
}

// heldTogether reports whether one container holds what two findings of different memory are of, or one of them is a part of the other's.
func heldTogether(a, b *Finding) bool {
	if !gathers(a.Holder) || !gathers(b.Holder) || a.Holder.Path == snapshot.Nameless {
		return false
	}
	return a.Holder.Path == b.Holder.Path || partOf(a.Holder.Path, b.Holder.Path) || partOf(b.Holder.Path, a.Holder.Path)
}
