package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
)

// Passes over the verdicts. Each has a name, so that a measurement can leave it out and show what it gains.
const (
	discoveryClue = "clue-discovery-rate"

	churnedPass    = "pass-churned"
	observedPass   = "pass-profiler"
	unassignedPass = "pass-unassigned"
	scatteredPass  = "pass-scattered"
	jointlyPass    = "pass-jointly"
	inputPass      = "pass-input"
	totalsPass     = "pass-totals"
	weighPass      = "pass-weigh"
	provePass      = "pass-proof"
	fillUpPass     = "pass-fills-up"
	boundsPass     = "pass-bounds"
	itemsPass      = "pass-items"
	clustersGroup  = "group-clusters"
	graphsGroup    = "group-graphs"
	listsGroup     = "group-lists"
	linesGroup     = "group-lines"
	callersGroup   = "group-callers"
	heldGroup      = "group-held"
	besideGroup    = "group-beside"
	objectsGroup   = "group-objects"
	fieldsGroup    = "group-fields"
	cyclesGroup    = "group-cycles"

	headPass      = "line"
	partsLine     = "line-parts"
	keeperLine    = "line-keeper"
	forwardLine   = "line-forward"
	helperLine    = "line-helper"
	holderCause   = "cause-holder"
	ownersCause   = "cause-owners"
	driverCause   = "cause-driver"
	shapeCause    = "cause-shape"
	commonCause   = "cause-common"
	backwardCause = "cause-backward"
	headCause     = "cause-head"
	drainedCause  = "cause-drained"
)

// Parts lists all parts of the judge that Options.Without can leave out: the rules, in the order in which they are
// asked; the facts that they use; the passes over their verdicts; and the clues of the cause.
func Parts() []Part {
	return slices.Concat(judge.Parts(), series.Parts(), []Part{
		{Name: discoveryClue, About: "false discovery rate over all sites"},
		{Name: churnedPass, About: "blocks of half-way that are gone, without births"},
		{Name: observedPass, About: "a profiler's own memory"},
		{Name: unassignedPass, About: "blocks that replace those of other lines while their device does not grow"},
		{Name: scatteredPass, About: "settled sites below one call are judged as one while all of their device grows steadily"},
		{Name: jointlyPass, About: "sites that settled while all of their device grows steadily are in doubt"},
		{Name: inputPass, About: "lines that become larger together, as with a longer input"},
		{Name: totalsPass, About: "containers that become longer in proportion to all of a device"},
		{Name: weighPass, About: "negligible growth"},
		{Name: provePass, About: "blocks that nothing can release"},
		{Name: fillUpPass, About: "containers with their own bound"},
		{Name: boundsPass, About: "declared bounds"},
		{Name: itemsPass, About: "containers that become longer in proportion to the process"},
		{Name: clustersGroup, About: "one finding of sites in step below one call"},
		{Name: graphsGroup, About: "one finding of one autograd graph"},
		{Name: listsGroup, About: "one finding of what one list holds in step"},
		{Name: linesGroup, About: "one finding of leaks at one line"},
		{Name: callersGroup, About: "one finding of leaks at one line that many stacks lead to"},
		{Name: besideGroup, About: "what holds other objects of one line and becomes longer in proportion holds a leak of that line"},
		{Name: heldGroup, About: "undecided sites join the leak of the list that holds them"},
		{Name: objectsGroup, About: "one finding of tensors and objects that one container holds"},
		{Name: fieldsGroup, About: "one finding of lists of one object in step"},
		{Name: cyclesGroup, About: "one finding of what cycles hold of one function in step"},
		{Name: headPass, About: "the whole choice of the line; the user's innermost line instead"},
		{Name: partsLine, About: "fields of objects are made where the object is made"},
		{Name: keeperLine, About: "a list that is a field is filled by a method of its type"},
		{Name: forwardLine, About: "a forward pass returns what it computes"},
		{Name: helperLine, About: "a helper that also allocates healthy memory is skipped"},
		{Name: holderCause, About: "holders, as a clue of the cause"},
		{Name: ownersCause, About: "classes of owners, as a clue of the cause"},
		{Name: driverCause, About: "what growth follows, as a clue of the cause"},
		{Name: shapeCause, About: "the shape of growth, as a clue of the cause"},
		{Name: commonCause, About: "frames common to most stacks are no clue of the cause"},
		{Name: backwardCause, About: "whether gradients were computed, as a clue of the cause"},
		{Name: headCause, About: "a value that is recreated at each event, as a clue of the cause"},
		{Name: drainedCause, About: "the oldest blocks are gone, as a clue of the cause"},
	})
}

// step runs a part of the judge, unless it is left out.
func (r *Result) step(part string, do func()) {
	if !r.options.Without.Has(part) {
		do()
	}
}

// hide removes the clues of the cause that are left out.
func hide(w Without, e *cause.Evidence) {
	if len(w) == 0 {
		return
	}
	for _, clue := range []struct {
		name string
		hide func()
	}{
		{driverCause, func() { e.Driver = "" }},
		{shapeCause, func() { e.Shape = "" }},
		{backwardCause, func() { e.Backward = cause.Unknown }},
		{headCause, func() { e.Head = cause.Unknown }},
		{drainedCause, func() { e.Drained = cause.Unknown }},
	} {
		if w.Has(clue.name) {
			clue.hide()
		}
	}
	for i := range e.Sites {
		s := &e.Sites[i]
		if w.Has(holderCause) {
			s.Holders = nil
		}
		if w.Has(ownersCause) {
			s.Owners = 0
		}
		if w.Has(commonCause) {
			s.Common = nil
		}
	}
}
