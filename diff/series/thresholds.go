package series

// How a site's history is read, and what its growth does. A share is of 1, and a chance is a probability.

// How a series is read.
const (
	// Windows is into how many floors a long series is thinned: few enough that
	// one block in ten steps shows in most, enough that chance among ten thousand
	// sites does not rise in all.
	Windows = 20
	// warmUpParts is how many parts a series has, of which the first is warm-up.
	warmUpParts = 10
	// Testable is how many floors a test for trend needs: strictly rising, six
	// have p = 0.009.
	Testable = 6
	// Climbing is how many marks what never falls must have, not to have done so by
	// chance: if each interval were as likely to fall as to rise, twelve had 0.0002.
	Climbing = 12
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
	// beforeHinge is how many floors before the best fit a rise may begin: by the clock its first floors may be low.
	beforeHinge = 2
)

// Whether growth goes on.
const (
	// LateBegins is where in a run its last part begins, as a share, and lateShare how much of the
	// whole run's slope that must keep: what saturates keeps less.
	LateBegins = 0.6
	LateShare  = 0.4
	// steepJump is by how much an interval's rate must exceed that of the whole run for
	// its growth to be a jump: a long interval carries much of what is even.
	steepJump = 2
	// Enough is how many rises tell a rate.
	Enough = 8
	// overdue is by how much of their usual distance the next of several regular rises
	// may be late.
	overdue = 0.1
	// regularGaps is how many distances tell whether rises are regular.
	regularGaps = 3
	// alikeGaps is how much longer than the shortest the longest distance of regular
	// rises may be.
	alikeGaps = 1.5
	// Doubtful is the chance, for rises at random moments of an even rate, of what is
	// taken for a rate that falls or for an end of growth: as many leaks at random moments
	// are left undecided.
	Doubtful = 0.02
	// Unlikely is the chance below which chance is not taken for the reason: of an end without a rise of few rises
	// that have ended, of an input that rises, or a site's share of it, and of even growth over few marks.
	Unlikely = 0.05
	// fewer is the share of the rises, and bytes, of the first half that the second must
	// stay below: among many rises a rate that hardly falls is significant.
	fewer = 0.75
	// jitter is by how much marks by the clock may be nearer to each other than they were meant
	// to be, as a share: two neighbours are no one stretch for it.
	jitter = 0.1
)

// What is a leak's.
const (
	// SteadySteps is how many steps with a birth tell that births are even: one in each quarter.
	SteadySteps = 4
	// LongestGap is how much of the time between two marks may pass without a birth,
	// or a rise, in what goes on all along. A leak of one block an epoch stays below it
	// from four epochs on.
	LongestGap = 0.35
	// FewStairs is how often a site must have risen for its trend to count: what is
	// made in two or three goes, by one layer, shape or worker after the other, ties
	// most of the floors between and so looks less like chance than it is.
	FewStairs = 4
	// evenRates is by how much the rates of intervals may differ for their growth to be the same,
	// and evenOfFew for it to be even over few marks.
	evenRates = 1.25
	evenOfFew = 2
)

// What is no leak's.
const (
	// AtOnce is the share of the time within which all births lie of state that is made once, and of
	// a window of recent steps; a time of fewer than quarters steps has none.
	AtOnce   = 0.25
	quarters = 8
	// Lent is how many blocks may be held at one mark and not at another, as a share of
	// those that stayed, for the births of these to count.
	Lent = 0.1
	// AlikeRates is how much faster than its input, or than in a good run, a site may grow.
	AlikeRates = 0.1
)
