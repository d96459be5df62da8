// Package cause is the catalogue of leak causes and fixes. The catalogue is data: an entry lists clues, each worth
// some points, and one function adds up the points of those that a finding shows.
package cause

import (
	"cmp"
	"slices"
	"strings"
)

// Cause is one entry of the catalogue.
type Cause struct {
	ID         string
	Name       string // "activations retained after the step"
	What       string // what happens, in sentences
	Sign       string // how it looks in snapshots, in sentences
	Fix        string // a clause without a full stop
	Unplaced   string // replaces Fix if the line is unknown; "" for the same text
	Before     string // a few lines of code with the cause
	After      string // the same code, fixed
	Workloads  []string
	References []string // public threads that report it, "repository#number"

	// elsewhere has Name, Fix and Unplaced for a program without tensors; "" for the same text.
	elsewhere [3]string

	when  when
	clues []clue
	// objects: it is also a cause of growth on a language's heap. Other causes apply only to tensors.
	objects bool
	// plain: it is also a cause in a server or a tool that trains nothing.
	plain bool
	// last: it is offered only if no other cause fits.
	last bool
}

// Last reports whether the cause is offered only if no other fits.
func (c *Cause) Last() bool { return c.last }

// Match is a cause that fits a finding.
type Match struct {
	Cause *Cause
	// Why lists what fits, most points first, joined by "; ". It begins with "likely: " if the cause is Likely.
	Why    string
	Likely bool // fewer than Sure points, or nearly as many as for another cause
	Points int
}

// Least is how many points a cause needs to be offered, and Sure to be more than likely. A single name, or a single
// property of the memory, is worth less than Least. A property of one cause only, such as an owner class of the
// engine, reaches Sure together with any other clue.
const (
	Least = 3
	Sure  = 7
)

// Matches lists the causes that fit, the best first; among equals, in the order of the catalogue. Causes with at most
// half of the best one's points are left out. It is nil if none fits.
func Matches(e *Evidence) []Match {
	var fit []Match
	for i := range catalogue {
		if m := catalogue[i].match(e); m.Points >= Least {
			if e.NoTensors {
				m.Cause = &plainly[i]
			}
			fit = append(fit, m)
		}
	}
	if slices.ContainsFunc(fit, func(m Match) bool { return !m.Cause.last }) {
		fit = slices.DeleteFunc(fit, func(m Match) bool { return m.Cause.last })
	}
	slices.SortStableFunc(fit, func(a, b Match) int { return cmp.Compare(b.Points, a.Points) })
	if len(fit) > 0 {
		fit = slices.DeleteFunc(fit, func(m Match) bool { return 2*m.Points <= fit[0].Points })
	}
	for i := range fit {
		fit[i].Likely = fit[i].Points < Sure || i+1 < len(fit) && fit[i].Points-fit[i+1].Points < 2
		if fit[i].Likely {
			fit[i].Why = "likely: " + fit[i].Why
		}
	}
	return fit
}

// match adds up the points of one entry; zero if the entry is not for such a finding.
func (c *Cause) match(e *Evidence) Match {
	m := Match{Cause: c}
	if !c.when.holds(e) || e.Objects && !c.objects || e.Plain && !c.plain {
		return m
	}
	type reason struct {
		points int
		text   string
	}
	var reasons []reason
	for i := range c.clues {
		points, why := c.clues[i].weigh(e)
		if why == "" {
			if c.clues[i].needed {
				return Match{Cause: c}
			}
			continue
		}
		m.Points += points
		if points > 0 {
			reasons = append(reasons, reason{points, why})
		}
	}
	slices.SortStableFunc(reasons, func(a, b reason) int { return cmp.Compare(b.points, a.points) })
	var texts []string
	for _, r := range reasons {
		// "Only the graph holds them" already says that the graph does.
		if len(texts) < 3 && !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, r.text) }) {
			texts = append(texts, r.text)
		}
	}
	m.Why = strings.Join(texts, "; ")
	return m
}

// All returns the catalogue.
func All() []Cause { return slices.Clone(catalogue) }

// Find returns the entry with this id; nil if there is none.
func Find(id string) *Cause {
	for i := range catalogue {
		if catalogue[i].ID == id {
			return &catalogue[i]
		}
	}
	return nil
}

// FindPlainly returns the entry with this id in words for programs without tensors; nil if there is none.
func FindPlainly(id string) *Cause {
	for i := range plainly {
		if plainly[i].ID == id {
			return &plainly[i]
		}
	}
	return nil
}

// catalogue is in the order in which memdiag explain lists it.
var catalogue = slices.Concat(graphs, kept, copies, caches, lifetimes, shared, allocator)

// plainly is the catalogue in words for programs without tensors.
var plainly = func() []Cause {
	all := slices.Clone(catalogue)
	for i := range all {
		c := &all[i]
		c.Name, c.Fix, c.Unplaced = cmp.Or(c.elsewhere[0], c.Name), cmp.Or(c.elsewhere[1], c.Fix), cmp.Or(c.elsewhere[2], c.Unplaced)
	}
	return all
}()
