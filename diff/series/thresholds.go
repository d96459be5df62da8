package series

// Thresholds for reading a site's history and its growth. A share is a part of 1, and a chance is a probability.

// How a series is read.
const (
	// Windows is the most floors to which a long series is thinned. They are few enough that one block in ten steps
	// shows in most, and many enough that random growth among ten thousand sites does not rise in all.
	Windows = 20
	// warmUpParts: the first 1/warmUpParts of a series is warm-up.
	warmUpParts = 10
	// Testable is how many floors a trend test needs: six strictly rising ones have p = 0.009.
	Testable = 6
	// Climbing is how many marks a series that never falls needs, so that chance is unlikely: if each interval were
	// as likely to fall as to rise, twelve would have 0.0002.
	Climbing = 12
	// stays is how many marks in a row, by the clock, a block must be seen at to count. Between the allocation of a
	// larger block and the release of the old one, both exist.
	stays = 3
	// nearlyAll is the share of steps with a mark above which no ramp that begins anew in each epoch goes unseen.
	nearlyAll = 0.9
	// settling: the first 1/settling of a site's time may have more blocks than later times, even if a larger block
	// replaces each.
	settling = 3
	// onsetParts: a flat start before a late rise must be longer than 1/onsetParts of the series.
	onsetParts = 5
	// flatShare is how much a flat start may vary, as a share of the later rise.
	flatShare = 0.1
	// beforeHinge is how many floors before the best fit a rise may begin: by the clock, its first floors may be low.
	beforeHinge = 2
)

// Whether growth goes on.
const (
	// LateBegins is where the last part of a run begins, as a share of the run. LateShare is the least share of the
	// whole run's slope that this part must have: what saturates has less.
	LateBegins = 0.6
	LateShare  = 0.4
	// steepJump is how many times the whole run's rate an interval must exceed to be a jump: a long interval has a
	// large part of even growth, too.
	steepJump = 2
	// Enough is how many rises are needed to know a rate.
	Enough = 8
	// overdue is how late the next of several regular rises may be, as a share of their distance.
	overdue = 0.1
	// regularGaps is how many distances are needed to know whether rises are regular.
	regularGaps = 3
	// alikeGaps is how many times the shortest distance of regular rises the longest may be.
	alikeGaps = 1.5
	// Doubtful is the chance below which rises at random moments of an even rate count as a falling rate or an end of
	// growth. It is also the share of leaks with random moments that stay undecided.
	Doubtful = 0.02
	// Unlikely is the chance below which chance is rejected as the reason: for a pause after few rises, for the rise
	// of an input or of a site's share of it, and for even growth over few marks.
	Unlikely = 0.05
	// fewer is the share of the rises, and bytes, of the first half that the second half must stay below, and of the
	// slowest earlier rate that the end must stay below: with many rises, even a slight fall of the rate is
	// significant.
	fewer = 0.75
	// endPart is how long the end may be, as a share of the run, in which growth that was seen at each mark is slower and
	// may have stopped. What is slower for longer has another rate.
	endPart = 0.25
	// jitter is how much nearer to each other than intended marks by the clock may be, as a share. Two such
	// neighbours must not fall into one stretch.
	jitter = 0.1
)

// Thresholds of a leak.
const (
	// SteadySteps is how many steps with a birth even births need: one in each quarter.
	SteadySteps = 4
	// LongestGap is the longest time without a birth or a rise, as a share of the time between two marks, in growth
	// that goes on. A leak of one block an epoch stays below it from four epochs on.
	LongestGap = 0.35
	// FewStairs is how often a site must have risen for its trend to count. What is allocated in two or three parts,
	// by one layer, shape or worker after another, ties most floors, and seems less like chance than it is.
	FewStairs = 4
	// evenRates is the largest ratio of interval rates for equal growth, and evenOfFew for even growth over few
	// marks.
	evenRates = 1.25
	evenOfFew = 2
)

// Thresholds of growth that is no leak.
const (
	// AtOnce is the share of the time within which all births of state allocated once, or of a window of recent
	// steps, lie. A time of fewer than quarters steps is too short to tell.
	AtOnce   = 0.25
	quarters = 8
	// Lent is how many blocks may be live at one mark and freed by another, as a share of those that stayed, so that
	// the births of the latter count.
	Lent = 0.1
	// AlikeRates is how much faster than its input, or than in a good run, a site may grow, as a share.
	AlikeRates = 0.1
)
