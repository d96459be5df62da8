package diff

import "github.com/memdiag/memdiag/snapshot"

// The thresholds of the judge: what it takes to call growth a leak, bounded or undecided. A share is of 1,
// and a chance is a probability. Those of the process and its meters, of lines, of holders and of forecasts
// stand where they are used.

// How a series is read.
const (
	// windows is into how many floors a long series is thinned: few enough that
	// one block in ten steps shows in most, enough that chance among ten thousand
	// sites does not rise in all.
	windows = 20
	// warmUpParts is how many parts a series has, of which the first is warm-up.
	warmUpParts = 10
	// testable is how many floors a test for trend needs: strictly rising, six
	// have p = 0.009.
	testable = 6
	// climbing is how many marks what never falls must have, not to have done so by
	// chance: if each interval were as likely to fall as to rise, twelve had 0.0002.
	climbing = 12
	// stays is at how many marks by the clock in a row a block must be seen to count, since
	// between the making of a larger block and the end of the one before both are there.
	stays = 3
	// nearlyAll is the share of the steps with a mark from which on no ramp that begins anew
	// in each epoch passes between them.
	nearlyAll = 0.9
	// settling is how many parts a site's time has, of which the first may hold more blocks
	// than come later, though each is replaced by a larger one.
	settling = 3
	// onsetParts is how many parts a series has, of which the first is too short to be what was flat
	// before a late rise.
	onsetParts = 5
	// flatShare is how much of its later rise a site may move before it begins to
	// rise: what moved more was not flat, and had risen and fallen before.
	flatShare = 0.1
)

// Whether growth goes on.
const (
	// lateBegins is where in a run its last part begins, as a share, and lateShare how much of the
	// whole run's slope that must keep: what saturates keeps less.
	lateBegins = 0.6
	lateShare  = 0.4
	// endBegins is where in a run its end begins, and endShare how much of the whole run's slope the end
	// has that levels off.
	endBegins = 0.8
	endShare  = 0.1
	// steepJump is by how much an interval's rate must exceed that of the whole run for
	// its growth to be a jump: a long interval carries much of what is even.
	steepJump = 1.5
	// enough is how many rises tell a rate.
	enough = 8
	// overdue is by how much of their usual distance the next of several regular rises
	// may be late.
	overdue = 0.1
	// regularGaps is how many distances tell whether rises are regular.
	regularGaps = 3
	// alikeGaps is how much longer than the shortest the longest distance of regular
	// rises may be.
	alikeGaps = 1.5
	// doubtful is the chance, for rises at random moments of an even rate, of what is
	// taken for a rate that falls or for an end of growth: as many leaks at random moments
	// are left undecided.
	doubtful = 0.02
	// unlikely is that of an end without a rise of few rises that have ended.
	unlikely = 0.05
	// fewer is the share of the rises, and bytes, of the first half that the second must
	// stay below: among many rises a rate that hardly falls is significant.
	fewer = 0.75
	// jitter is by how much marks by the clock may be nearer to each other than they were meant
	// to be, as a share: two neighbours are no one stretch for it.
	jitter = 0.1
)

// What is a leak's.
const (
	// steadySteps is how many steps with a birth tell that births are even: one in each quarter.
	steadySteps = 4
	// longestGap is how much of the time between two marks may pass without a birth,
	// or a rise, in what goes on all along. A leak of one block an epoch stays below it
	// from four epochs on.
	longestGap = 0.35
	// significant is the false discovery rate at which a trend counts.
	significant = 0.01
	// fewStairs is how often a site must have risen for its trend to count: what is
	// made in two or three goes, by one layer, shape or worker after the other, ties
	// most of the floors between and so looks less like chance than it is.
	fewStairs = 4
	// evenRates is by how much the rates of intervals may differ for their growth to be the same,
	// and evenOfFew for it to be even over few marks.
	evenRates = 1.25
	evenOfFew = 2
	// fewFalse is the share of chance that is let pass among those that few marks
	// show to grow.
	fewFalse = 0.05
)

// What is no leak's.
const (
	// atOnce is the share of the time within which all births lie of state that is made once, and of
	// a window of recent steps; a time of fewer than quarters steps has none.
	atOnce   = 0.25
	quarters = 8
	// lent is how many blocks may be held at one mark and not at another, as a share of
	// those that stayed, for the births of these to count.
	lent = 0.1
	// followsInput is the chance below which an input, or a site's share of it, rises.
	followsInput = 0.05
	// alikeRates is how much faster than its input, or than in a good run, a site may grow.
	alikeRates = 0.1
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
	// gapped is how many gaps a spread is told from.
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
