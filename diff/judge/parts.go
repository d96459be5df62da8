package judge

import "github.com/memdiag/memdiag/diff/series"

// lastRule is the name of the last rule of each list. It holds if no other does, and cannot be left out.
const lastRule = "undecided"

// EvenMarks is the rule about equal growth between evenly spaced snapshots.
const EvenMarks = "even-snapshots"

// Facts that the rules ask for. Each has a name, so that a measurement can leave it out and show what it gains.
const (
	replacedClue   = "clue-replaced"
	wandersClue    = "clue-wanders"
	steadyClue     = "clue-births"
	trendClue      = "clue-trend"
	momentsClue    = "clue-moments"
	gathersClue    = "clue-gathers"
	steadyLateClue = "clue-steady-late"
)

// Parts lists the rules, in the order in which they are asked, and then the facts that they ask for.
func Parts() []series.Part {
	var parts []series.Part
	for _, rules := range [][]rule{seriesRules, pairRules} {
		for i := range rules {
			if rules[i].name != lastRule {
				parts = append(parts, series.Part{Name: rules[i].name, About: rules[i].asks})
			}
		}
	}
	return append(parts, []series.Part{
		{Name: replacedClue, About: "a block that is replaced by a larger one"},
		{Name: wandersClue, About: "temporary blocks among permanent ones"},
		{Name: steadyClue, About: "even births"},
		{Name: trendClue, About: "a trend over the snapshots"},
		{Name: momentsClue, About: "when growth happens, by births or rises"},
		{Name: gathersClue, About: "a list that holds everything and releases nothing"},
		{Name: steadyLateClue, About: "regular rises in the second half"},
	}...)
}
