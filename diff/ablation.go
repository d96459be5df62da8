package diff

import (
	"github.com/memdiag/memdiag/diff/cause"
)

// lastRule is what is said where no other rule holds. It cannot be left out.
const lastRule = "undecided"

const evenMarks = "even-marks"

// Clues are what the rules go by, and passes what is done with their verdicts. Each has a name, so
// that it can be left out to measure what it wins.
const (
	replacedClue   = "clue-replaced"
	wandersClue    = "clue-wanders"
	steadyClue     = "clue-births"
	trendClue      = "clue-trend"
	momentsClue    = "clue-moments"
	gathersClue    = "clue-gathers"
	steadyLateClue = "clue-steady-late"
	discoveryClue  = "clue-discovery-rate"

	churnedPass    = "pass-churned"
	observedPass   = "pass-profiler"
	unassignedPass = "pass-unassigned"
	inputPass      = "pass-input"
	weighPass      = "pass-weigh"
	provePass      = "pass-proof"
	fillUpPass     = "pass-fills-up"
	boundsPass     = "pass-bounds"
	clustersGroup  = "group-clusters"
	graphsGroup    = "group-graphs"
	listsGroup     = "group-lists"
	linesGroup     = "group-lines"
	heldGroup      = "group-held"
	fieldsGroup    = "group-fields"

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

// Parts are all parts of the judge that Options.Without can leave out: rules in the order in which
// they are asked, then what they go by, what is done with their verdicts, and clues of the cause.
func Parts() []Part {
	var parts []Part
	for _, rules := range [][]rule{seriesRules, pairRules} {
		for i := range rules {
			if rules[i].name != lastRule {
				parts = append(parts, Part{rules[i].name, rules[i].asks})
			}
		}
	}
	return append(append(parts, historyParts()...), []Part{
		{replacedClue, "a block that is replaced by a larger one"},
		{wandersClue, "temporary blocks among permanent ones"},
		{steadyClue, "even births"},
		{trendClue, "a trend over the snapshots"},
		{momentsClue, "when growth happens, by births or rises"},
		{gathersClue, "a list that holds everything and releases nothing"},
		{steadyLateClue, "regular rises in the second half"},
		{discoveryClue, "false discovery rate over all sites"},
		{churnedPass, "blocks of half-way that are gone, without births"},
		{observedPass, "a profiler's own memory"},
		{unassignedPass, "blocks without a stack while their device does not grow"},
		{inputPass, "lines that become larger together, as with a longer input"},
		{weighPass, "negligible growth"},
		{provePass, "blocks that nothing can release"},
		{fillUpPass, "containers with their own bound"},
		{boundsPass, "declared bounds"},
		{clustersGroup, "one finding of sites in step below one call"},
		{graphsGroup, "one finding of one autodiff graph"},
		{listsGroup, "one finding of what one list holds in step"},
		{linesGroup, "one finding of leaks at one line"},
		{heldGroup, "undecided sites join the leak of the list that holds them"},
		{fieldsGroup, "one finding of lists of one object in step"},
		{headPass, "the whole choice of the line; the user's innermost line instead"},
		{partsLine, "fields of objects are made where the object is made"},
		{keeperLine, "a list that is a field is filled by a method of its type"},
		{forwardLine, "a forward pass returns what it computes"},
		{helperLine, "a helper that also allocates healthy memory is skipped"},
		{holderCause, "holders, as a clue of the cause"},
		{ownersCause, "classes of owners, as a clue of the cause"},
		{driverCause, "what growth follows, as a clue of the cause"},
		{shapeCause, "the shape of growth, as a clue of the cause"},
		{commonCause, "frames common to most stacks are no clue of the cause"},
		{backwardCause, "whether gradients were computed, as a clue of the cause"},
		{headCause, "a value that is recreated at each event, as a clue of the cause"},
		{drainedCause, "the oldest blocks are gone, as a clue of the cause"},
	}...)
}

// step does a part of the judging, unless it is left out.
func (r *Result) step(part string, do func()) {
	if !r.options.Without.has(part) {
		do()
	}
}

// hide takes clues of the cause away.
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
		if w.has(clue.name) {
			clue.hide()
		}
	}
	for i := range e.Sites {
		s := &e.Sites[i]
		if w.has(holderCause) {
			s.Holders = nil
		}
		if w.has(ownersCause) {
			s.Owners = 0
		}
		if w.has(commonCause) {
			s.Common = nil
		}
	}
}
