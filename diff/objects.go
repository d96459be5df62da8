package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// joinObjects joins a leak and the growth of other memory that one container holds into one finding: tensors, and
// their keys and other parts of its items. Tensors lead if they leak: the line of objects is known from some windows
// only, and the size of counted items is unknown. Few bytes of objects without a known
// holder are such parts if the leak's function makes them.
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
				if (heldTogether(lead, f) || besideTensors(lead, f)) && lead.Rate.Unit == f.Rate.Unit {
					r.putBehind(lead, f.Rows, f.Rate)
					lead.Beside += f.Growth().Bytes
					joined[f.Rows[0]] = true
				}
			}
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return joined[f.Rows[0]] })
}

// memory is a kind of memory; one container may hold several kinds.
type memory int

const (
	tensorMemory  memory = iota
	objectMemory         // on a language's heap
	countedMemory        // items and nodes, whose size is unknown
	segmentMemory        // named segments, whose handles holdSegments joins
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

// putBehind adds rows that a leak's holder also holds to the leak, with their rate. They are in the process's memory:
// only the leak's own blocks fill a separate device.
func (r *Result) putBehind(f *Finding, rows []*Row, rate Rate) {
	f.Behind = append(f.Behind, rows...)
	f.Rate.Bytes = sum(f.Rate.Bytes, rate.Bytes)
	f.sized()
	if f.Rows[0].Device.Kind.InProcess() && (f.RunsOut != nil || f.ofNodes()) {
		f.RunsOut = r.forecast(f.Rows[0], f.Rate)
	}
}

// leakHeldWith is the leak that is held together with a finding of a container's items; nil for none. Tensors come
// before objects.
func (r *Result) leakHeldWith(items *Finding) (lead *Finding) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict == Leak && f.Against == nil && f.Nodes == nil && f.Rate.Unit == items.Rate.Unit && heldTogether(f, items) && (lead == nil || onLanguageHeap(lead.Rows) && !onLanguageHeap(f.Rows)) {
			lead = f
		}
	}
	return lead
}

// heldTogether reports whether one container holds the blocks of two findings of different memory, or one of their
// holders is an element of the other.
func heldTogether(a, b *Finding) bool {
	if !gathers(a.Holder) || !gathers(b.Holder) || a.Holder.Path == snapshot.Nameless {
		return false
	}
	return a.Holder.Path == b.Holder.Path || partOf(a.Holder.Path, b.Holder.Path) || partOf(b.Holder.Path, a.Holder.Path)
}

// besideTensors reports whether a finding of objects that nothing was found to hold is little beside a leak of tensors, and comes
// from the same call.
func besideTensors(leak, f *Finding) bool {
	if leak.memory() != tensorMemory || f.memory() != objectMemory || !f.Unheld() || f.Headline < 0 || muchMore*f.Growth().Bytes > leak.Growth().Bytes {
		return false
	}
	return slices.ContainsFunc(leak.Rows, func(row *Row) bool {
		at := frame.Headline(row.Frames)
		return at >= 0 && ofOneCall(row.Frames[at:], f.Rows[0].Frames[f.Headline:])
	})
}

// sized changes the reason of counted blocks whose size is unknown, once their finding has a rate in bytes.
func (f *Finding) sized() {
	if at := slices.Index(f.Reasons, judge.SizeUnknown); at >= 0 && f.Rate.Bytes.Value > 0 {
		f.Reasons = slices.Clone(f.Reasons)
		f.Reasons[at] = "their own size is not recorded, so the rate is of the memory that grows with them"
	}
}
