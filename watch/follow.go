// Package watch follows a running run and reports changes: suspected leaks, leaks, when memory runs out, and how the run ended. Its
// verdicts come from package live, which may be asked any number of times.
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

// Follower looks at the run in a folder whenever something in it is new.
type Follower struct {
	Dir string
	// Every is the time between checks of the folder.
	Every time.Duration
	// Open reads the run's ranks, at least one, and calls each for every rank.
	Open func(each func(*snapshot.Run) error) error
	// Judge compares the snapshots of one rank, at least three.
	Judge func(*snapshot.Run) (*diff.Result, error)
	// Check compares one rank with the user's budgets; nil for none.
	Check func(*snapshot.Run) []budget.Outcome
	// Retry is the least time before what could not be read is read again; 0 retries at each check of the folder.
	Retry time.Duration
	// Allowance is how much time all looks may take before they become rarer; 0 for a second.
	Allowance time.Duration
	// Back is how much time looks at the run's past may take in all; 0 for ten seconds.
	Back time.Duration
	// Held is how many blocks of snapshots are held in memory before ranks are judged while they are read; 0 for two million.
	Held int

	over    map[overBudget]bool // whether a budget was broken at the last look
	tests   map[int]*live.Watch // by rank
	folder  state               // the folder at the last look
	looked  time.Time           // time of the last look; zero before the first
	took    time.Duration       // duration of the last look
	glanced time.Duration       // duration of the last check of the folder
	before  time.Duration       // duration of the check before that
	spent   time.Duration       // duration of all looks
	runs    []*snapshot.Run     // runs of the last look, one per rank
	begun   time.Time           // when the current run began; zero if it does not say
	unread  map[string]int      // number of looks at which a snapshot could not be read, by its note
	change  time.Time           // the newest file time at the last check of the folder
	since   time.Time           // when that was on this machine's clock, at the latest
	ended   bool

	past    []snapshot.Mark // moments of the run's past that still need a look
	gone    bool            // whether past was determined
	ranks   []Rank          // ranks of the last look
	failed  string          // why the last look failed; "" if it did not
	fails   time.Time       // since when it has failed with the same error
	back    time.Duration   // duration of all looks at the past
	backHas int             // number of their snapshots
}

// overBudget identifies a budget, its rank and its place.
type overBudget struct {
	rank       int
	budget, of string
}

// Look is the state of a run at a moment.
type Look struct {
	Time time.Time
	Took time.Duration // the time to read and to judge
	// Ranks are the run's ranks in order; a run without ranks has one.
	Ranks []Rank
	// Fresh: there are other snapshots than at the last look. Otherwise only the tables of processes are newer.
	Fresh bool
	// Other: the folder has another run than at the last look. The state of the previous run is forgotten.
	Other bool
	// Past: it shows the run at an earlier moment, for a watch that began late. Looks at the past come first, in their order.
	Past bool
	// Failed is why the run could not be read; it will be read again. The ranks are those of the last look.
	Failed string
	// Ended: no look follows. The run says that it has ended or, if Died, none of its processes exists any more.
	Ended, Died bool
}

// Rank is the state of one rank.
type Rank struct {
	Run     *snapshot.Run
	Read    int          // number of snapshots that were read, including those after a moment of the past
	Result  *diff.Result // nil with fewer than three snapshots
	Changed []*live.Suspect
	// Unexplained is lasting growth of processes without a known line, reported once.
	Unexplained []*diff.Reserve
	// Suspects are all findings that were ever suspected.
	Suspects []*live.Suspect
	// AtEnd are leaks that no look has reported, by the verdict on a run that has ended.
	AtEnd []*live.Suspect
	// Unread lists snapshots that could not be read, each once.
	Unread []string
	// Budgets are the outcomes of all budgets. Turned are the outcomes that changed between broken and kept since the last look.
	Budgets, Turned []budget.Outcome
}

// Leaks reports whether a finding of the rank is a leak, by all looks so far or by the verdict at the end.
func (r *Rank) Leaks(f *diff.Finding) bool {
	s := r.suspect(f)
	return s != nil && s.State == live.Alarming || slices.ContainsFunc(r.AtEnd, func(s *live.Suspect) bool { return s.Finding == f })
}

// suspect is the state of a finding over the looks; nil for none.
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

// Number is the rank's number; snapshot.NoRank for a run without ranks.
func (r *Rank) Number() int {
	if r.Run.Info.Rank != nil {
		return *r.Run.Info.Rank
	}
	if len(r.Run.Snapshots) > 0 {
		return r.Run.Snapshots[0].Rank
	}
	return snapshot.NoRank
}

// tablesEvery is the time between readings of the tables of processes while there are no new snapshots: the tables become long.
const tablesEvery = 10 * time.Second

// After a look at new snapshots, the next waits atWork times its duration. Once all looks together have taken allowance, they may take
// one part in share of the time, but new snapshots wait no longer than patience for that: verdicts on short runs need many looks, and a
// run of a million steps has some hundred. Looks without new snapshots take a thousandth of the time (rarer).
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

// unstable is how many times a folder is read at most if it changes meanwhile, for example because the recorder makes room.
const unstable = 5

// grace is how long after the last change all processes of a run may have ended before the run counts as dead: the recorder writes the
// end after them.
const grace = 10 * time.Second

// Next waits until there is something new, and looks at it. After the last look it returns io.EOF. If the folder no longer exists, the
// error wraps io/fs.ErrNotExist.
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

// glance looks if a look is due; otherwise the look is nil.
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

// Last takes the last look immediately: the run has ended, whether its folder says so or not. It returns io.EOF if the folder is empty
// or the last look was already taken.
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

// quiet is how long nothing has changed. A file's time may be ahead of this machine's clock.
func (f *Follower) quiet(now state) time.Duration {
	if !now.changed.Equal(f.change) {
		f.change, f.since = now.changed, now.changed
		if clock := time.Now(); clock.Before(f.since) {
			f.since = clock
		}
	}
	return time.Since(f.since)
}

// end makes a look the last one: the verdict decides what no look has decided.
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

// look reads the run, whose folder had the state before. It reads again if the folder changes meanwhile and something was missed. Files
// that are only added meanwhile wait for the next look, since among many ranks one always writes.
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
			f.past = nil // the verdict decides, or too much memory would be needed
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

// rankOf compares the state of a rank with its earlier state.
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

// other reports whether another run has replaced the run in the folder since the last look. It then forgets the previous run.
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

// check compares all ranks with the budgets.
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

// errNothingYet says that the folder has nothing to read yet.
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
