package diff

import "github.com/memdiag/memdiag/snapshot"

// Thresholds for calling growth a leak, bounded or undecided. A share is a part of 1, and a chance is a probability.
// Thresholds of the process and its meters, of lines, holders and forecasts are where they are used.

// Thresholds of growth that is no leak.
const (
	// leastChurned is how many blocks a site must have held half-way for most of them to be freed: even a leak may
	// free a single one.
	leastChurned = 2
	// profilerBytes and profilerShare, of all live memory, are how much a profiler may hold for itself: the larger of
	// the two. A program that retains a profiler's results soon exceeds them, and leaks.
	profilerBytes = 64 * snapshot.KiB
	profilerShare = 0.01
	// standFor is the least share of the steps that the blocks of recorded steps must stand for, for growth in each
	// step.
	standFor = 0.8
)

// Thresholds for growth that belongs together, and for what growth follows.
const (
	// Growth is in step if at least alikeBirths of two sets of birth steps are common, or if two curves differ by at
	// most alikeCurves of their rise.
	alikeBirths = 0.8
	alikeCurves = 0.15
	// exceptions is the share of events that need not coincide with what growth follows. Of five or more events one
	// may always miss, since the end of a run may be the end of an epoch without a record.
	exceptions = 0.1
	// atMost is the largest share of all steps that may coincide with it by chance.
	atMost = 0.5
	// irregular is the least spread of the gaps between events, as a share of their mean, that no rule causes. Random
	// events with chance p in each step have sqrt(1-p), which is more for all that are rarer than every other step.
	irregular = 0.5
	// pauses is how many times its median the mean gap is if growth stops at times.
	pauses = 1.25
	// gapped is how many gaps are needed to know their spread.
	gapped = 5
)

// Thresholds for the ages of blocks in one snapshot.
const (
	// shortest is the least number of steps for a verdict.
	shortest = 20
	// evenSteps is in how many distinct steps births must lie to be even, and manySteps for strong evidence.
	evenSteps, manySteps = 6, 12
	// widest is the longest gap, as a share of the run, of births throughout the run. With fewer than manySteps
	// births, random moments often leave no longer gap, and occasional allocations are no leak. So fewer births must
	// be regular: no gap longer than regular times their mean distance. Of six to eleven random births 3 % are.
	widest, regular = 0.25, 1.5
	// uneven is the chance below which a spread is not even, unless its distance is below nearlyEven: with thousands
	// of births, the smallest warm-up is significant.
	uneven, nearlyEven = 0.01, 0.1
	// early and late are the shares of the run that count as its start and as recent.
	early, late = 0.1, 0.05
)
