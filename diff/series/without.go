package series

import "slices"

// Facts that a history uses. Each has a name, so that a measurement can leave it out and show what it gains.
const (
	onsetClue    = "clue-onset"
	lastingClue  = "clue-lasting"
	countClue    = "clue-count"
	stoppedClue  = "clue-stopped"
	jumpClue     = "clue-jump"
	flatClue     = "clue-flattens"
	climbsClue   = "clue-climbs"
	sameClue     = "clue-same"
	speedsUpClue = "clue-speeds-up"
	driftClue    = "clue-drift"
)

// Part is a named part of the judge.
type Part struct{ Name, About string }

// Without names the parts of the judge that are left out.
type Without []string

// Has reports whether a part is left out.
func (w Without) Has(name string) bool { return slices.Contains(w, name) }

// Parts lists what a history uses.
func Parts() []Part {
	return []Part{
		{onsetClue, "a site that was flat is judged from the start of its rise"},
		{lastingClue, "by the clock, of a block that is replaced the least or the most at three snapshots in a row"},
		{countClue, "the number of blocks, where one is larger than all others"},
		{stoppedClue, "the time since the last rise"},
		{jumpClue, "one jump with most of the growth"},
		{flatClue, "a curve that flattens"},
		{climbsClue, "series that never fall are judged by ranks"},
		{sameClue, "equal growth in each of few intervals"},
		{speedsUpClue, "ever more growth in each of few intervals"},
		{driftClue, "the drift must be sure as well as the ranks"},
	}
}
