package report

import (
	"regexp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Selection is which stacks and calls of a profile are drawn, and from which end. Expressions match calls as "function (file:line)".
type Selection struct {
	Focus  *regexp.Regexp // stacks with a call that matches; nil for all
	Hide   *regexp.Regexp // calls that are left out of the stacks; nil for none
	Invert bool           // from the call that allocates outwards
}

// Select applies a selection. It reports whether a stack is left.
func (p *Profile) Select(o Selection) bool {
	matches := func(of *regexp.Regexp) func(snapshot.Frame) bool {
		return func(f snapshot.Frame) bool { return of.MatchString(frameLabel(f)) }
	}
	if o.Focus != nil {
		p.Samples = slices.DeleteFunc(p.Samples, func(s Sample) bool { return !slices.ContainsFunc(s.Frames, matches(o.Focus)) })
		p.Title += ", stacks through " + brief(o.Focus.String())
	}
	if o.Hide != nil {
		for i := range p.Samples {
			s := &p.Samples[i]
			if kept := slices.DeleteFunc(slices.Clone(s.Frames), matches(o.Hide)); len(kept) < len(s.Frames) {
				s.Frames = kept
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
