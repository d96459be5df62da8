// Package watch follows a run while it goes on, and tells what changes: what is suspected, what leaks, when memory runs out,
// and how the run ended. Verdicts are those of package live, which may be asked for as often as one likes.
package watch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
)

// Follower looks at the run in a folder whenever there is something new in it.
type Follower struct {
	Dir string
	// Every is the time from one glance at the folder to the next.
	Every time.Duration
	// Open reads the run's ranks, one at least, and hands on each.
	Open func(each func(*snapshot.Run) error) error
	// Judge compares the snapshots of one rank, which has three at least.
	Judge func(*snapshot.Run) (*diff.Result, error)
	// Check holds one rank against the budgets that are set; nil for none.
	Check func(*snapshot.Run) []budget.Outcome
	// Retry is the time after which what could not be read is read again, at the earliest; 0 for at each glance.
	Retry time.Duration
	// Allowance is how long all looks may take before they become rarer; 0 for a second.
	Allowance time.Duration
	// Back is how long looks at the past of a run may take in all; 0 for ten seconds.
	Back time.Duration
	// Held is how many blocks of snapshots are held at once, before ranks are judged as they are read; 0 for two million.
	Held int

	over    map[overBudget]bool // budgets that were broken at the last look
	tests   map[int]*live.Watch // by rank
	folder  state               // at the last look
	looked  time.Time           // when that was; zero before the first
	took    time.Duration       // how long
	glanced time.Duration       // how long the last glance at the folder's files took
	before  time.Duration       // and the one before
	spent   time.Duration       // how long all looks took
	runs    []*snapshot.Run     // of it
	begun   time.Time           // when the run that is in the folder began; zero if it does not say
	unread  map[string]int      // at how many looks a snapshot could not be read, by what is said of it
	change  time.Time           // the newest time of a file at the last glance
	since   time.Time           // when that was by this machine's clock, at the latest
	ended   bool

	past    []snapshot.Mark // moments of the run's past, at which a look is still due
	gone    bool            // they were looked at
	ranks   []Rank          // of the last look
	failed  string          // why the last look failed; "" where it did not
	fails   time.Time       // since when it has failed alike
	back    time.Duration   // how long the looks at the past took
	backHas int             // and how many snapshots they were of
}

// overBudget names a budget of a rank and what it is for.
type overBudget struct {
	rank       int
	budget, of string
}

// Look is what a run shows at a moment.
type Look struct {
	Time time.Time
	Took time.Duration // to read and to judge
	// Ranks are the run's, in their order; a run without ranks is one.
	Ranks []Rank
	// Fresh: there are other snapshots than at the last look. Else only the tables of processes are newer.
	Fresh bool
	// Other: another run is in the folder than at the last look. What was known of the one before is forgotten.
	Other bool
	// Past: it shows the run as it was at an earlier moment, for a watch that began late. Looks at the past come first, in their order.
	Past bool
	// Failed: the run could not be read, and is read again; the ranks are those of the last look.
	Failed string
	// Ended: no look follows, since the run says that it has ended; or, Died, since none of its processes is there any more.
	Ended, Died bool
}

// Rank is what one rank shows.
type Rank struct {
	Run     *snapshot.Run
	Read    int          // snapshots that were read, those after a moment of the past, too
	Result  *diff.Result // nil for fewer than three snapshots
	Changed []*live.Suspect
	// Unexplained is growth of processes without a line that has lasted, once.
	Unexplained []*diff.Reserve
	// Suspects are all that were ever suspected.
	Suspects []*live.Suspect
	// AtEnd are the leaks that no look had reported, by the verdict on a run that has ended.
	AtEnd []*live.Suspect
	// Unread says which snapshots could not be read, each once.
	Unread []string
	// Budgets are how the budgets that are set are kept. Turned are those of them that were broken at the last look and are
	// kept, or the other way round.
	Budgets, Turned []budget.Outcome
}

// Leaks reports whether a finding of the rank's leaks, by all looks until now, or by the verdict at the end.
func (r *Rank) Leaks(f *diff.Finding) bool {
	s := r.suspect(f)
	return s != nil && s.State == live.Alarming || slices.ContainsFunc(r.AtEnd, func(s *live.Suspect) bool { return s.Finding == f })
}

// suspect is what the looks know of a finding; nil for nothing.
func (r *Rank) suspect(f *diff.Finding) *live.Suspect {
	process := ""
	if f.Child != nil {
		process = diff.KindOf(f.Child.Role)
	}
	at := slices.IndexFunc(r.Suspects, func(s *live.Suspect) bool { return s.Is(process, f) })
	if at < 0 {
		return nil
	}
	return r.Suspects[at]
}

// Number is the rank's; snapshot.NoRank for a run without ranks.
func (r *Rank) Number() int {
	if r.Run.Info.Rank != nil {
		return *r.Run.Info.Rank
	}
	if len(r.Run.Snapshots) > 0 {
		return r.Run.Snapshots[0].Rank
	}
	return snapshot.NoRank
}

// tablesEvery is how often the tables of processes are read again while there are no new snapshots: they become long.
const tablesEvery = 10 * time.Second

// A look at new snapshots comes atWork times what the last one took after it. Once all looks have taken allowance, they take one
// part in share of the time, but new snapshots wait no longer than patience for that: verdicts of short runs need many looks, and
// a run of a million steps has some hundred. Looks without new snapshots take a thousandth of the time.
const (
	atWork, rarer, share = 10, 1000, 200
	allowance            = time.Second
	patience             = 10 * time.Second
)

// due reports whether it is time for a look at new snapshots.
func (f *Follower) due(now state) bool {
	since := time.Since(f.looked)
	afford := f.spent <= cmp.Or(f.Allowance, allowance) || since >= min(share*f.took, patience) || now.infos != f.folder.infos
	return since >= atWork*f.took && afford
}

// fewest is how many snapshots a verdict needs.
const fewest = 3

// unstable is how often a folder is read at most that changes meanwhile, as when the recorder makes room.
const unstable = 5

// grace is how long after the last change a run's processes may all be gone before it counts as dead: the recorder writes
// the end after them.
const grace = 10 * time.Second

// Next waits until there is something new, and looks; after the last look it returns io.EOF. A folder that is gone is an
// error that wraps io/fs.ErrNotExist.
func (f *Follower) Next(ctx context.Context) (*Look, error) {
	if f.ended {
		return nil, io.EOF
	}
	for ctx.Err() == nil {
		look, err := f.glance()
		switch {
		case look != nil:
			return look, nil
		case err == nil || errors.Is(err, errNothingYet):
		case !f.transient(err):
			return nil, err
		default:
			if look := f.failure(err); look != nil {
				return look, nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.untilGlance(min(f.before, f.glanced))):
		}
	}
	return nil, ctx.Err()
}

// glance looks if it is time to; else the look is nil.
func (f *Follower) glance() (*Look, error) {
	if len(f.past) > 0 {
		return f.lookBack()
	}
	begun := time.Now()
	now, err := stateOf(f.Dir)
	f.before, f.glanced = f.glanced, time.Since(begun)
	if err != nil {
		return nil, err
	}
	if f.failed != "" && time.Since(f.looked) < max(f.Retry, atWork*f.took) {
		return nil, nil //nolint:nilnil // it is read again later
	}
	fresh := f.looked.IsZero() || now.snapshots != f.folder.snapshots
	switch {
	case fresh && f.due(now) || f.again() || now.tables != f.folder.tables && time.Since(f.looked) >= max(tablesEvery, rarer*f.took):
		return f.look(now, fresh)
	case fresh || f.quiet(now) < grace || !f.dead():
		return nil, nil //nolint:nilnil // there is nothing new
	}
	look, err := f.look(now, false)
	if err != nil {
		return nil, err
	}
	look.Died = !look.Ended
	f.end(look)
	return look, nil
}

// Last looks at once, for the last time: the run has ended, whether it says so or not. A folder in which there is nothing, and a run whose
// last look was taken, give io.EOF.
func (f *Follower) Last() (*Look, error) {
	if f.ended {
		return nil, io.EOF
	}
	f.past, f.gone = nil, true // the verdict decides
	now, err := stateOf(f.Dir)
	if err != nil {
		return nil, err
	}
	look, err := f.look(now, true)
	if errors.Is(err, errNothingYet) {
		return nil, io.EOF
	}
	if err == nil && !f.ended {
		f.end(look)
	}
	return look, err
}

// quiet is for how long nothing has changed. A file's time may be ahead of this machine's clock.
func (f *Follower) quiet(now state) time.Duration {
	if !now.changed.Equal(f.change) {
		f.change, f.since = now.changed, now.changed
		if clock := time.Now(); clock.Before(f.since) {
			f.since = clock
		}
	}
	return time.Since(f.since)
}

// end makes a look the last one: what no look has decided is left to the verdict.
func (f *Follower) end(look *Look) {
	look.Ended, f.ended = true, true
	for i := range look.Ranks {
		if rank := &look.Ranks[i]; rank.Result != nil {
			rank.atEnd(rank.Result)
			for _, c := range rank.Result.Children {
				rank.atEnd(c.Result)
			}
		}
	}
}

func (r *Rank) atEnd(result *diff.Result) {
	for i := range result.Findings {
		f := &result.Findings[i]
		if f.Verdict != diff.Leak || r.Leaks(f) {
			continue
		}
		at := live.Suspect{Fingerprint: baseline.Fingerprint(f.Rows[0]), Device: f.Rows[0].On(), Since: result.Last.Mark}
		if f.Child != nil {
			at.Process = diff.KindOf(f.Child.Role)
		}
		if s := r.suspect(f); s != nil {
			at = *s
		}
		at.Finding, at.State = f, live.Alarming
		r.AtEnd = append(r.AtEnd, &at)
	}
}

// look reads the run, whose folder was so before. It is read again if it changes while it is read and something is missed. What only comes meanwhile is for the next
// look: of many ranks always one writes.
func (f *Follower) look(before state, fresh bool) (*Look, error) {
	begun := time.Now()
	var run *reading
	for try := 1; ; try++ {
		var err error
		run, err = f.read()
		after, gone := stateOf(f.Dir)
		if gone != nil {
			return nil, gone
		}
		if try < unstable && after.snapshots != before.snapshots && (err != nil || run.missed()) {
			before = after
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errNothingYet // there is no snapshot
		}
		if err != nil {
			return nil, err
		}
		f.runs, f.folder, f.looked = run.runs, before, time.Now()
		break
	}
	look := &Look{Time: f.looked, Fresh: fresh, Ended: !slices.ContainsFunc(f.runs, func(r *snapshot.Run) bool { return r.Info.Finished == nil }), Other: f.other()}
	if !f.gone {
		f.gone = true
		if f.past = momentsOf(f.runs); look.Ended || len(run.judged) > 0 {
			f.past = nil // the verdict decides, or too much would be held
		}
		if len(f.past) > 0 {
			f.looked = time.Time{} // the look at the present is due after them
			return f.lookBack()
		}
	}
	for i, of := range f.runs {
		result, err := run.result(i, f)
		if err != nil {
			return nil, err
		}
		rank := f.rankOf(of, result, f.looked)
		rank.Unread = f.news(of.Unread, look.Ended)
		look.Ranks = append(look.Ranks, rank)
	}
	if f.Check != nil {
		f.check(look.Ranks)
	}
	look.Took = time.Since(begun)
	f.took = look.Took
	f.spent += look.Took
	f.ranks, f.failed = look.Ranks, ""
	if look.Ended {
		f.end(look)
	}
	return look, nil
}

// rankOf holds what a rank shows against what it showed before.
func (f *Follower) rankOf(run *snapshot.Run, result *diff.Result, at time.Time) Rank {
	rank := Rank{Run: run, Read: len(run.Snapshots), Result: result}
	if result == nil {
		return rank
	}
	test := f.test(rank.Number())
	rank.Changed, rank.Suspects = test.Look(result), test.Suspects()
	rank.Unexplained = test.Growths(result, at.Sub(run.Info.Started))
	return rank
}

// other reports whether another run has taken the folder since the last look, and forgets the one before.
func (f *Follower) other() bool {
	begun := f.runs[0].Info.Started
	if begun.IsZero() || begun.Equal(f.begun) {
		return false
	}
	known := !f.begun.IsZero()
	f.begun = begun
	if known {
		f.tests, f.over, f.unread = nil, nil, nil
	}
	return known
}

// check holds all ranks against the budgets.
func (f *Follower) check(ranks []Rank) {
	if f.over == nil {
		f.over = make(map[overBudget]bool)
	}
	all := make([][]budget.Outcome, len(ranks))
	for i := range ranks {
		all[i] = f.Check(ranks[i].Run)
	}
	for i, of := range budget.Across(all) {
		r := &ranks[i]
		r.Budgets = of
		for _, o := range of {
			key := overBudget{r.Number(), o.Budget.String(), o.Of}
			if o.Unchecked == "" && o.Broken() != f.over[key] {
				f.over[key] = o.Broken()
				r.Turned = append(r.Turned, o)
			}
		}
	}
}

// errNothingYet is a folder in which nothing can be read as yet.
var errNothingYet = errors.New("nothing to look at yet")

func (f *Follower) test(rank int) *live.Watch {
	if f.tests == nil {
		f.tests = make(map[int]*live.Watch)
	}
	if f.tests[rank] == nil {
		f.tests[rank] = live.New()
	}
	return f.tests[rank]
}
