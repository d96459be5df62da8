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
	// ByTrend judges each site by its growth over the run and the births of its blocks.
	ByTrend Rule = "trend"
	// ByHandbook is the common rule, for comparison: a block leaks if the base has no block with its stack.
	ByHandbook Rule = "handbook"
)

// Result is the comparison of a run's first and last snapshot, with a verdict
// on each site that grew.
type Result struct {
	Rule         Rule
	First, Last  *snapshot.Snapshot
	Rows         []Row     // of First and Last, as Pair orders them
	Series       *Series   // of the whole run
	Findings     []Finding // leaks, then inconclusive, then bounded; fastest growth first
	Reserves     []Reserve // devices whose reserved memory grew, and growth of processes that no stack explains
	Notes        []string
	Refused      *snapshot.Snapshot // the snapshot with the last failed request for memory; nil for none
	Known        []string           // known leaks of libraries that the run shows or may show, a sentence each
	NotSeen      []string           // parts of the run that no verdict covers, a clause each
	Intermediate int                // snapshots between First and Last
	// Comparable: the snapshots can be of one process, and do not hold separate parts of its allocations. Otherwise a
	// difference is not growth, and nothing is called a leak.
	Comparable bool
	Children   []*Child // of the command's other recorded processes, those that leak
	// Open has each kind of other process of which one may leak or could not be judged.
	Open   map[string]bool
	Across *Across // nil unless JoinRanks found it among the ranks of a run
	// Idle are the declared bounds that apply to nothing in the snapshots.
	Idle []snapshot.Bound

	run       *snapshot.Run
	stranger  string         // why the snapshots are not comparable
	unwatched string         // the part of the run that was not watched; "" for none
	undecided map[string]int // other recorded processes by kind: a longer run could tell whether they leak
	after     *Result        // of the process after its last step; nil if no snapshots show it
	options   Options
	tides     []series.Tide
	few       judge.FewMarks
	tried     int                    // findings for which a forecast of the deciding run was tried
	changed   int                    // rows that changed between the first and the last snapshot
	half      map[series.SiteKey]Row // rows of the middle and the last snapshot; nil before first use
	profilers *bool                  // whether the profilers' own memory is small; nil before first use
	around    *surroundings          // nil before it is first asked for
	indices   *containerIndex        // nil before it is first asked for
	totals    [][]float64            // totals of Series.Devices at each mark; nil before first use
}

// Finding is a group of rows that grew together, with its verdict.
type Finding struct {
	// Rows has at least one row. All are of one device, largest growth first; of a graph, its end is first. The last
	// Joined rows would be inconclusive alone, and the same list, map or graph holds them.
	Rows     []*Row
	Joined   int
	Verdict  Verdict
	Evidence Evidence
	Reasons  []string
	Rate     Rate // zero if the snapshots are not comparable
	Shape    Shape
	Headline int              // index into Rows[0].Frames; -1 if no frame is the user's
	Holder   *snapshot.Holder // nil if nobody searched, or found one
	// Partly holds a few of the blocks and cannot hold the others; nil if there is a Holder, or none was found.
	Partly   *snapshot.Holder
	Cause    *cause.Cause // nil if none fits; of an inconclusive finding, its cause if it leaks
	CauseWhy string
	Others   []cause.Match // causes that fit less well, the best first
	Against  *Comparison   // nil unless compared with a good run
	Pace     *Pace         // nil unless it is a leak and the run shows what its growth follows
	More     More
	// Bound is the declared bound of an inconclusive finding, which it has not reached; nil for none.
	Bound   *snapshot.Bound
	Child   *Child    // the process of the finding; nil for the result's own process
	Among   string    // the role of the result's process, if the command started several such processes
	RunsOut *Forecast // nil unless a leak on a device whose limit is known
	// Uncounted: the profiler records bytes only, so numbers of blocks mean nothing.
	Uncounted bool
	// Sampled: the profiler recorded some allocations, each of which stands for others. All figures are estimates.
	Sampled bool
	// Nodes is the growth of the process beyond what stacks explain, if the nodes of the autograd graph that leaks,
	// or the items of a container, are assumed to cause it; else nil. Its rate is included in Rate, but its growth
	// not in Growth.
	Nodes *Reserve
	// Behind has rows that leak in the same graph, or that the same container holds in other memory, and that are not
	// in Rows: for tensors, the graph's nodes that hold them; for nodes, tensors without a stack; for objects, the
	// counted items; for segments of shared memory, their handles.
	Behind []*Row
	// Beside is the growth of objects that are Behind tensors, or of tensors Behind objects. Their rate is included
	// in Rate.
	Beside snapshot.Bytes

	graph  bool // the rows are of one autograd graph
	native bool // no holder of its objects was found, and native memory grows in proportion
	filled bool // its holder becomes longer in proportion, however many objects each item has
}

// Growth is the growth of all rows.
func (f *Finding) Growth() Tally { return f.sum((*Row).Growth) }

// Before is what all rows held in the earlier snapshot.
func (f *Finding) Before() Tally { return f.sum(func(r *Row) Tally { return r.Before }) }

// After is what all rows hold in the later snapshot.
func (f *Finding) After() Tally { return f.sum(func(r *Row) Tally { return r.After }) }

// Born is what was allocated between the two and is still held.
func (f *Finding) Born() Tally { return f.sum(func(r *Row) Tally { return r.Born }) }

// Died is what the earlier snapshot held and the later one does not.
func (f *Finding) Died() Tally { return f.sum(func(r *Row) Tally { return r.Died }) }

// Owners is the set of classes that hold any of the rows' blocks.
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

// Uncounted reports whether the profiler recorded only bytes in either snapshot, so that numbers of blocks mean
// nothing.
func (r *Result) Uncounted() bool { return r.First.Blocks.Uncounted() || r.Last.Blocks.Uncounted() }

// samplePeriod is the larger sampling period of the first and the last snapshot; 0 if all allocations were recorded.
func (r *Result) samplePeriod() snapshot.Bytes {
	return max(r.Last.SamplePeriod, r.First.SamplePeriod, 0)
}

// Separate reports whether the snapshots cannot be compared because they are parts of one process's record that do
// not overlap, and not because they are of different processes.
func (r *Result) Separate() bool { return r.stranger == separateRecordings }

// Equal reports whether there are two snapshots, of one mark, that show the same: either one is compared with itself,
// or nothing happened between them.
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
