package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Rule is a way to decide what is a leak.
type Rule string

// The rules.
const (
	// ByTrend judges each site's growth over the run and the births of its
	// blocks.
	ByTrend Rule = "trend"
	// ByHandbook is the widespread rule, kept to compare with: a block leaks if
	// the base has no block with its stack.
	ByHandbook Rule = "handbook"
)

// Result is the comparison of a run's first and last snapshot, with a verdict
// on each site that grew.
type Result struct {
	Rule         Rule
	First, Last  *snapshot.Snapshot
	Rows         []Row     // of First and Last, as Pair orders them
	Series       *Series   // of the whole run
	Findings     []Finding // leaks, then inconclusive, then bounded; what grows fastest first
	Reserves     []Reserve // devices whose reserved memory grew by itself
	Notes        []string
	Refused      *snapshot.Snapshot // that tells of the last request for memory that failed; nil for none
	Known        []string           // known leaks of libraries that it shows, or may show, a sentence each
	NotSeen      []string           // what of the run no verdict speaks of, a clause each
	Intermediate int                // snapshots between First and Last
	// Comparable: the snapshots can be of one process, and do not hold parts of what it
	// allocated that exclude each other, so that growth is growth. Nothing is called a
	// leak where they are not.
	Comparable bool
	Children   []*Child // of the command's other recorded processes those that leak
	// Open has each kind of other processes with one that may leak or could not be judged.
	Open   map[string]bool
	Across *Across // nil unless JoinRanks found it among the ranks of a run
	// Idle are the declared bounds of which nothing that the snapshots hold is.
	Idle []snapshot.Bound

	run       *snapshot.Run
	stranger  string  // why the snapshots are not comparable
	unwatched string  // what of the run was not; "" for nothing
	after     *Result // of what the process did after its last step; nil where no snapshots show it
	options   Options
	tides     []series.Tide
	few       judge.FewMarks
	tried     int                    // findings of which was asked what decides them
	changed   int                    // rows that are not in the last snapshot as in the first
	half      map[series.SiteKey]Row // of the middle snapshot and the last; nil before it is first asked for
	profilers *bool                  // whether what they hold for themselves is little; nil before it is first asked for
	around    *surroundings          // nil before it is first asked for
	indices   *containerIndex        // nil before it is first asked for
	totals    [][]float64            // of Series.Devices, at each mark; nil before it is first asked for
}

// Finding is what grew together, and what memdiag says of it.
type Finding struct {
	// Rows are at least one, of one device, the largest growth first; of a graph, its end
	// before. Behind them are Joined rows that by themselves show less, and hang on the
	// same list, map or graph.
	Rows     []*Row
	Joined   int
	Verdict  Verdict
	Evidence Evidence
	Reasons  []string
	Rate     Rate // zero between snapshots that are not comparable
	Shape    Shape
	Headline int              // index into Rows[0].Frames; -1 where no frame is the user's
	Holder   *snapshot.Holder // nil where nobody looked, or found one
	// Partly holds a few of the blocks and cannot hold the others; nil where there is a
	// Holder, or none was found.
	Partly   *snapshot.Holder
	Cause    *cause.Cause // nil where none fits; of an inconclusive one, its cause if it leaks
	CauseWhy string
	Others   []cause.Match // causes that fit less well, the best first
	Against  *Comparison   // nil unless held against a good run
	Pace     *Pace         // nil unless it is a leak, and the run tells what it follows
	More     More
	// Bound is what an inconclusive finding is declared to gather up to and has not
	// reached; nil where nothing is declared of it.
	Bound   *snapshot.Bound
	Child   *Child    // the process that it is of; nil for the one that the result is of
	Among   string    // the role of the process that the result is of, if it is one of several alike that the command started
	RunsOut *Forecast // nil unless a leak on a device whose limit is known
	// Uncounted: the profiler tells bytes alone, and figures of blocks mean nothing.
	Uncounted bool
	// Sampled: the profiler recorded some allocations, for which others stand: all figures
	// are estimates.
	Sampled bool
	// Nodes is how the process grew beyond what stacks explain, where that is taken to be the nodes
	// of autograd's graph that leak, or the items of a container; else nil. Its rate is a part of Rate, and its growth none of Growth.
	Nodes *Reserve
	// Behind is what leaks in the same graph, or what the same container holds in other memory, and is no part of Rows: the nodes
	// on which the rows hang; or, where Rows are nodes, tensors without a stack; objects, the items that were counted, and of
	// segments of shared memory their handles.
	Behind []*Row
	// Beside is by how much objects grew that are Behind tensors, or tensors Behind objects. Their rate is a part of Rate.
	Beside snapshot.Bytes

	graph  bool // the rows are of one autograd graph
	native bool // nothing was found to hold its objects, and native memory grows in proportion
}

// Growth is what all rows hold more than before.
func (f *Finding) Growth() Tally { return f.sum((*Row).Growth) }

// Before is what all rows held in the earlier snapshot.
func (f *Finding) Before() Tally { return f.sum(func(r *Row) Tally { return r.Before }) }

// After is what all rows hold in the later snapshot.
func (f *Finding) After() Tally { return f.sum(func(r *Row) Tally { return r.After }) }

// Born is what was allocated between the two and is still held.
func (f *Finding) Born() Tally { return f.sum(func(r *Row) Tally { return r.Born }) }

// Died is what the earlier snapshot held and the later does not.
func (f *Finding) Died() Tally { return f.sum(func(r *Row) Tally { return r.Died }) }

// Owners are the classes that hold any of the rows' blocks.
func (f *Finding) Owners() snapshot.Owners {
	var owners snapshot.Owners
	for _, r := range f.Rows {
		owners |= r.Owners
	}
	return owners
}

func (f *Finding) sum(of func(*Row) Tally) Tally {
	var t Tally
	for _, r := range f.Rows {
		t = t.Plus(of(r))
	}
	return t
}

// Uncounted reports whether the profiler told bytes alone in either snapshot, so that figures
// of blocks mean nothing.
func (r *Result) Uncounted() bool { return r.First.Blocks.Uncounted() || r.Last.Blocks.Uncounted() }

// samplePeriod is that of the last snapshot, or of the first; 0 where all allocations were recorded.
func (r *Result) samplePeriod() snapshot.Bytes {
	return max(r.Last.SamplePeriod, r.First.SamplePeriod, 0)
}

// Separate reports whether the snapshots cannot be compared since they are parts of one process's
// record that do not overlap, and not since they are of different processes.
func (r *Result) Separate() bool { return r.stranger == separateRecordings }

// Equal is true for two snapshots of one mark that show the same: one is compared with
// itself, or nothing happened between them.
func (r *Result) Equal() bool {
	changed := func(row Row) bool { return row.Before != row.After || row.Born.Blocks > 0 }
	sameMeters := func(a, b snapshot.Device) bool { return a.Kind == b.Kind && a.Index == b.Index && a.Meters == b.Meters }
	return r.Comparable && r.Intermediate == 0 && r.First.Mark == r.Last.Mark &&
		!slices.ContainsFunc(r.Rows, changed) && slices.EqualFunc(r.First.Devices, r.Last.Devices, sameMeters)
}

// Leaks counts the findings with verdict leak.
func (r *Result) Leaks() int { return r.Count(Leak) }

// Count counts the findings with a verdict.
func (r *Result) Count(v Verdict) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Verdict == v {
			n++
		}
	}
	return n
}

// Growth is the change of all live memory between First and Last.
func (r *Result) Growth() Tally {
	var t Tally
	for i := range r.Rows {
		g := r.Rows[i].Growth()
		t.Blocks += g.Blocks
		t.Bytes += g.Bytes
		t.Requested += g.Requested
	}
	return t
}
