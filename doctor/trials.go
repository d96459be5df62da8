// Package doctor proves what makes a program leak: it runs the program again with one change, and judges whether the growth is gone and
// whether the program computes the same.
package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// Trial is one change to try.
type Trial struct {
	record.Intervention
	Claim  string   // what it tests, a clause
	Change string   // what it does, a clause
	Args   []string // added to the command
}

const (
	// MostTrials is how many trials are run at most: each takes as long as the program.
	MostTrials = 4
	// before: a change is made after this part (an eighth) of a run, but after at least fewestBefore steps. By then, what a program
	// retains on purpose exists.
	before, fewestBefore = 8, 5
	// shortBefore: in a run too short for that, the change is made after a third.
	shortBefore = 3
)

// containerKinds are the kinds of holders whose items can be removed.
var containerKinds = []string{"list", "dict", "map", "set", "deque", "cache"}

var hookNames = regexp.MustCompile(`_hooks(_with_kwargs|_always_called)?$`)

// graphCauses are the causes that retain an autograd graph, which an intervention can drop.
var graphCauses = []string{"graph-retained", "pending-graph", "forward-only-graph", "gradient-graph-cycle"}

// TrialsOf are the changes that test why something leaks, the likeliest first. untried lists the causes that none of them tests, a
// clause each.
func TrialsOf(r *diff.Result, l *Leak) (trials []Trial, untried []string) {
	p := &planner{from: from(l.judged(r)), child: l.child() != nil}
	h := l.holder()
	for _, id := range l.causes() {
		if !p.forCause(id, h) {
			untried = append(untried, fmt.Sprintf("%s: no change in a running program tests it", id))
		}
	}
	p.forHolder(h)
	if h == nil {
		p.collect()
	}
	if h == nil && l.Finding == nil {
		p.add(record.Release, "", "memory that the program has freed stays with the allocator", "allocators return free memory to the system after each step")
	}
	if len(p.trials) > MostTrials {
		p.trials = p.trials[:MostTrials]
	}
	return p.trials, untried
}

// from is when a change begins, in steps or seconds.
func from(r *diff.Result) float64 {
	length := r.Series.Axis.Length() / before
	if r.Series.Axis.Unit == series.Step {
		return max(1, min(max(fewestBefore, float64(int64(length))), float64(int64(r.Series.Axis.Length()/shortBefore))))
	}
	return length
}

type planner struct {
	from   float64
	child  bool
	trials []Trial
}

func (p *planner) add(kind record.InterventionKind, path, claim, change string) {
	if !slices.ContainsFunc(p.trials, func(t Trial) bool { return t.Kind == kind }) {
		p.trials = append(p.trials, Trial{record.Intervention{Kind: kind, Path: path, From: p.from, Child: p.child}, claim, change, nil})
	}
}

// forCause adds the trials of a cause, and reports whether there are any.
func (p *planner) forCause(id string, h *snapshot.Holder) bool {
	switch {
	case id == "reference-cycle":
		p.collect()
	case h == nil:
		return false
	case slices.Contains(graphCauses, id):
		p.detach(h)
	case id == "cache-without-bound" && slices.Contains(containerKinds, h.Kind):
		p.add(record.Clear, h.Path, fmt.Sprintf("%#q holds it", h.Path), fmt.Sprintf("%#q is emptied after each step", h.Path))
	case id == "hook-not-removed" && hookNames.MatchString(h.Path):
		p.unhook(h)
	default:
		n := len(p.trials)
		p.forHolder(h)
		return len(p.trials) > n || slices.ContainsFunc(p.trials, func(t Trial) bool { return t.Kind != record.Collect })
	}
	return true
}

// withItems is a variant of a trial with which the program failed for lack of items: the container keeps its length (Share). It reports
// false if that is impossible for this trial or kind of container.
func withItems(t Trial, h *snapshot.Holder) (Trial, bool) {
	if t.Kind != record.Cap && t.Kind != record.Clear || !slices.Contains([]string{"list", "dict", "map", "deque"}, h.Kind) {
		return t, false
	}
	t.Kind = record.Share
	t.Change = fmt.Sprintf("after each step one tensor in %#q replaces all older ones like it; its length stays", t.Path)
	return t, true
}

func (p *planner) collect() {
	p.add(record.Collect, "", "garbage waits for Python's garbage collector", "the collector runs after each step")
}

func (p *planner) detach(h *snapshot.Holder) {
	p.add(record.Detach, h.Path, fmt.Sprintf("%#q holds autograd's graph", h.Path), fmt.Sprintf("tensors in %#q are detached after each step", h.Path))
}

func (p *planner) unhook(h *snapshot.Holder) {
	p.add(record.Unhook, h.Path, fmt.Sprintf("hooks accumulate in %#q", h.Path), fmt.Sprintf("hooks added to %#q after warm-up are removed", h.Path))
}

// forHolder adds the trials of whether the holder has the memory.
func (p *planner) forHolder(h *snapshot.Holder) {
	switch {
	case h == nil:
	case hookNames.MatchString(h.Path):
		p.unhook(h)
	case slices.Contains(containerKinds, h.Kind) || h.Items > 0 && h.Kind == "graph":
		p.add(record.Cap, h.Path, fmt.Sprintf("%#q holds it", h.Path), fmt.Sprintf("after each step %#q is cut to its newest items, as many as it had after warm-up", h.Path))
	case h.Kind == "chain":
		p.add(record.Cut, h.Path, fmt.Sprintf("the objects of %#q hold each other", h.Path), fmt.Sprintf("after each step the chain %#q is cut to the length that it had after warm-up", h.Path))
	case h.Kind == snapshot.Nodes || h.Kind == "graph" || strings.HasPrefix(h.Kind, "variable"):
		p.detach(h)
	}
}

var (
	moreLikeIt = regexp.MustCompile(` and [\d ,]+ more like it$`)
	subscripts = regexp.MustCompile(`(\[[^\]]*\])+$`)
)

// HolderName is the last name in a holder's path: kept for "fit.<locals>.kept['x'] and 2 more like it".
func HolderName(path string) string {
	path = subscripts.ReplaceAllString(strings.TrimSuffix(moreLikeIt.ReplaceAllString(path, ""), "…"), "")
	_, name, _ := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], " default ")
	return cmp.Or(name, path[strings.LastIndexByte(path, '.')+1:])
}
