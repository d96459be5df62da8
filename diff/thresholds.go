package diff

import "github.com/memdiag/memdiag/snapshot"

// The thresholds of the judge: what it takes to call growth a leak, bounded or undecided. A share is of 1,
// and a chance is a probability. Those of the process and its meters, of lines, of holders and of forecasts
// stand where they are used.

// What is no leak's.
const (
	// leastChurned is how many blocks a site must have held half-way for most of them to be gone: of one, a
	// leak may hold one that goes as well.
	leastChurned = 2
	// profilerBytes and profilerShare, of all that is live, are what a profiler may hold for itself: the larger
	// of the two. A program that keeps all that a profiler gave it passes them before long, and leaks.
	profilerBytes = 64 * snapshot.KiB
	profilerShare = 0.01
	// standFor is the share of the steps that the blocks of recorded ones must stand for, for growth in each step.
	standFor = 0.8
)

// What grows together, and what it follows.
const (
	// alikeBirths is how much of two sets of birth steps must be common, and alikeCurves by how
	// much two curves may differ as a share of their rise, for the growth to be in step.
	alikeBirths = 0.8
	alikeCurves = 0.15
	// exceptions is the share of events that need not coincide with what growth is
	// said to follow; of five or more, one is let pass, since the end of a run may be
	// that of an epoch and nothing tells.
	exceptions = 0.1
	// atMost is the share of all steps that may coincide with it by themselves.
	atMost = 0.5
	// irregular is the least spread of the gaps between events, as a share of their
	// mean, that no rule makes; a coin thrown in each step has sqrt(1-p), which is
	// more for all that comes less often than every other step.
	irregular = 0.5
	// pauses is by how much the mean of the gaps is above their median where growth stops
	// at times.
	pauses = 1.25
	// gapped is how many gaps it takes to know a spread.
	gapped = 5
)

// What one snapshot tells by the ages of its blocks.
const (
	// shortest is the least number of steps that a verdict is given on.
	shortest = 20
	// evenSteps is in how many distinct steps births must lie to be called even, and
	// manySteps in how many for it to be strong evidence.
	evenSteps, manySteps = 6, 12
	// widest is the longest gap, as a share of the run, of what is born throughout.
	// Fewer than manySteps births at random moments leave no longer one often enough,
	// and what is made once now and then is no leak: so few must be regular, no gap
	// longer than regular times their mean distance. Of six to eleven random ones 3 % are.
	widest, regular = 0.25, 1.5
	// uneven is the chance below which a spread is not even, unless it is off by less
	// than nearlyEven: among thousands of births the smallest warm-up is significant.
	uneven, nearlyEven = 0.01, 0.1
	// early and late are the shares of the run that count as its start, and as now.
	early, late = 0.1, 0.05
)
