package report

import (
	"regexp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Selection says which stacks and calls of a profile are drawn, and from which end. Expressions match calls as "function (file:line)".
type Selection struct {
	Focus  *regexp.Regexp // keep stacks with a call that matches; nil for all
	From   *regexp.Regexp // stacks begin at the outermost call that matches, or inverted at the innermost; nil for their own ends
	Hide   *regexp.Regexp // calls to leave out of the stacks; nil for none
	Invert bool           // draw from the allocating call outwards
}

// Select applies a selection. It reports whether any stack is left.
func (p *Profile) Select(o Selection) bool {
	matches := func(of *regexp.Regexp) func(snapshot.Frame) bool {
		return func(f snapshot.Frame) bool { return of.MatchString(frameLabel(f)) }
	}
	if o.From != nil || o.Hide != nil {
		for i := range p.Samples {
			s := &p.Samples[i]
			s.head = &snapshot.Frame{}
			if at := p.heads.of(s.Device, s.Hash, s.Frames); at >= 0 {
				s.head = &s.Frames[at]
			}
		}
	}
	if o.Focus != nil {
		p.Samples = slices.DeleteFunc(p.Samples, func(s Sample) bool { return !slices.ContainsFunc(s.Frames, matches(o.Focus)) })
		p.Title += ", stacks through " + brief(o.Focus.String())
	}
	if o.From != nil {
		p.begin(matches(o.From), o.Invert)
		p.Title += ", from " + brief(o.From.String())
	}
	if o.Hide != nil {
		for i := range p.Samples {
			s := &p.Samples[i]
			if kept := slices.DeleteFunc(slices.Clone(s.Frames), matches(o.Hide)); len(kept) < len(s.Frames) {
				s.Frames = kept // a copy, so that head still points to the old frames
				if len(kept) == 0 {
					s.Label = "(all calls are hidden)"
				}
			}
		}
		p.Title += ", without " + brief(o.Hide.String())
	}
	if p.Inverted = o.Invert; o.Invert {
		p.Title += ", from the allocating call outwards"
	}
	return len(p.Samples) > 0
}

// begin removes from each stack the calls outside the outermost call that matches; inverted, the calls inside the innermost one. Stacks
// without a matching call are left out.
func (p *Profile) begin(matches func(snapshot.Frame) bool, inverted bool) {
	p.Samples = slices.DeleteFunc(p.Samples, func(s Sample) bool { return !slices.ContainsFunc(s.Frames, matches) })
	for i := range p.Samples {
		s := &p.Samples[i]
		first, last := slices.IndexFunc(s.Frames, matches), len(s.Frames)-1
		for !matches(s.Frames[last]) {
			last--
		}
		if inverted {
			s.Frames = s.Frames[first:]
		} else {
			s.Frames = s.Frames[:last+1]
		}
	}
}
