// Package live judges a run again and again while it goes on, so that looking often does not make alarms.
//
// A verdict is right by so many per cent where it is asked for once. Asked for at each snapshot, some moment of a
// clean run looks like a leak. So a verdict alone makes a suspect here, and what comes after it must bear it
// out: snapshots that the verdict has not seen. If what a suspect holds has no trend, it is at least as likely to fall, or to stay
// below the most that it had since it was suspected, as to rise above that, whenever it changes: so it is for a random walk, for
// noise around a level and for what goes back to one. A bet at even odds on a new highest one, for each snapshot, multiplies what
// was staked; it grows beyond 1/α with a chance of α at most, however long and often one looks (Ville's inequality; G. Shafer,
// Testing by betting, 2021). What is bet on is settled before the snapshot comes: the sites, the process, the level to beat and the
// stake. A site that is gone by then has lost.
//
// A suspicion is withdrawn once the growth has stopped, and an alarm is then over. The n-th suspicion of one place has 3α/4ⁿ
// to spend, so that all of them together make a false alarm with a chance of α at most.
//
// A container that fills does not fall either. So growth has to last for Lasting times as long as it took to become
// suspect; and nothing is a suspect before the run's beginning is over.
package live

import (
	"math"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Alpha is the chance of a false alarm of one place whose memory has no trend.
const Alpha = 0.01

// stopped is after how many looks in a row that do not call it a leak, nor leave it open, growth counts as stopped.
const stopped = 3

// Beginning is how many steps, or seconds, of a run make no suspect: what is allocated once, and what an epoch of a few
// steps gathers, grows in them. Of the labelled programs that do not leak three in five are called a leak at some step up
// to it, and one in fourteen after it (memdiag bench --live).
const Beginning = 32

// Awaiting is how long, in seconds, of a run by the clock makes no suspect if its program still has to take its first step: it loads its data,
// which grows as a leak does. Few load for longer, and a program whose steps nobody sees is judged from then on.
const Awaiting = 1800

// Lasting is for how many times as long as it took to find a suspect its growth has to last in all. With 2 two of 370
// such programs have an alarm, which containers make that fill, with 2.5 one, and with 3 none; a leak of each step has one at
// step 64, 80 or 96.
const Lasting = 3

// Watch is what is known of a run from the looks at it so far.
type Watch struct {
	suspects []*Suspect               // in the order in which they became it
	seen     map[string]snapshot.Mark // the newest of each process, by its kind
	growths  map[string]*growth       // without a line, by the kind of process
}

// growth is a process's growth, as long as looks see it.
type growth struct {
	since time.Duration // from the run's beginning
	told  bool
}

// Suspect is what was called a leak once, in one process or several alike, on one device.
type Suspect struct {
	// Fingerprint is the baseline's; findings of other processes and devices may have it too.
	Fingerprint string
	Process     string // the kind of process, such as "loader worker"; "" for the one that a result is of
	Device      series.DeviceID
	Finding     *diff.Finding // of the last look that called it a leak
	// Since is the mark at which this suspicion began.
	Since snapshot.Mark
	State State

	times  int           // that it was suspected
	missed int           // looks in a row at which it had stopped
	until  float64       // where on the axis of marks the growth has lasted for long enough
	pid    int           // of the process that the last look which called it a leak saw
	seen   snapshot.Mark // of that process at the last look at it
	test   betting
	bet    *bet      // on the next mark; nil for none
	sizes  []float64 // at the looks of this suspicion, of what has no series
}

// State is what the looks make of a suspect.
type State int

// States.
const (
	Suspected State = iota // snapshots to come decide
	Alarming               // they have
	Ended                  // they had, and it is no leak any more
	Withdrawn              // it stopped before they had
)

// New begins to watch a run.
func New() *Watch { return &Watch{seen: make(map[string]snapshot.Mark)} }

// Suspects are all, in the order in which they became it.
func (w *Watch) Suspects() []*Suspect { return slices.Clone(w.suspects) }

// Look takes the judgement of a run as it is now, and returns the suspects whose state it changed, new ones too. Of a process
// without a newer mark than at the last look it changes nothing.
func (w *Watch) Look(r *diff.Result) (changed []*Suspect) {
	changed = w.process("", 0, r.Run(), r)
	for _, c := range r.Children {
		changed = append(changed, w.process(diff.KindOf(c.Role), c.PID, r.Run(), c.Result)...)
	}
	return append(changed, w.quiet(r)...)
}

// process looks at one process, or one that stands for several alike, of a run.
func (w *Watch) process(kind string, pid int, run *snapshot.Run, r *diff.Result) (changed []*Suspect) {
	last, before := r.Last.Mark, w.seen[kind]
	if last.Step == before.Step && last.Time.Equal(before.Time) {
		return nil
	}
	w.seen[kind] = last
	x := r.Series.Axis.X
	now := x[len(x)-1]
	for _, s := range w.suspects {
		if s.Process == kind && s.bet != nil {
			for _, now := range s.bet.levels(pid, run, r) {
				s.test.settle(s.bet, now)
			}
			s.bet = nil
		}
	}
	held := make(map[*Suspect]*diff.Finding)
	for i := range r.Findings {
		f := &r.Findings[i]
		s := w.find(kind, f)
		if (s == nil || s.Over()) && f.Verdict == diff.Leak && begun(r) {
			if s == nil {
				s = &Suspect{Fingerprint: baseline.Fingerprint(f.Rows[0]), Process: kind, Device: f.Rows[0].On()}
				w.suspects = append(w.suspects, s)
			}
			s.suspect(last, lasted(r, f))
			changed = append(changed, s)
		}
		if s != nil && (held[s] == nil || f.Verdict == diff.Leak && held[s].Verdict != diff.Leak) {
			held[s] = f
		}
	}
	for _, s := range w.suspects {
		if s.Process == kind && !s.Over() && s.look(held[s], pid, r, now) {
			changed = append(changed, s)
		}
	}
	return changed
}

// Over reports whether nothing is suspected of it any more.
func (s *Suspect) Over() bool { return s.State == Ended || s.State == Withdrawn }

// suspect begins a suspicion: what was won before counts no more.
func (s *Suspect) suspect(since snapshot.Mark, until float64) {
	s.times++
	s.State, s.Since, s.until = Suspected, since, until
	s.test, s.missed, s.sizes = betting{money: 1}, 0, nil
}

// look takes what a look found of a suspect, nil for nothing, and reports whether that changes its state.
func (s *Suspect) look(f *diff.Finding, pid int, r *diff.Result, now float64) bool {
	switch {
	case f != nil && f.Verdict == diff.Leak:
		s.missed, s.Finding, s.pid, s.seen = 0, f, pid, r.Last.Mark
		s.bet = s.place(f, pid, r)
		if s.State != Alarming && s.test.money >= math.Pow(4, float64(s.times))/3/Alpha && now >= s.until {
			s.State = Alarming
			return true
		}
	case f == nil || f.Verdict != diff.Inconclusive:
		if s.missed++; s.missed < stopped {
			return false
		}
		if s.State == Alarming {
			s.State = Ended
		} else {
			s.State = Withdrawn
		}
		return true
	}
	return false
}

// Growths takes the judgement of a run at a time after its beginning, and returns the growth of processes that no line explains, once
// for each kind of process: when all looks have seen it for Lasting times as long as the first took.
func (w *Watch) Growths(r *diff.Result, at time.Duration) (lasting []*diff.Reserve) {
	before := w.growths
	w.growths = make(map[string]*growth)
	if at.Seconds() < beginning(r) {
		return nil
	}
	for _, e := range r.Unaccounted() {
		kind := ""
		if e.Processes != nil {
			kind = e.Processes.Role
		}
		g := before[kind]
		if g == nil {
			g = &growth{since: at}
		}
		w.growths[kind] = g
		if !g.told && at >= Lasting*g.since {
			g.told = true
			lasting = append(lasting, e)
		}
	}
	return lasting
}

// find is the suspect that a finding of a kind of process is: one that has any of its places; nil for none.
func (w *Watch) find(kind string, f *diff.Finding) *Suspect {
	for _, s := range w.suspects {
		if s.Is(kind, f) {
			return s
		}
	}
	return nil
}

// Is reports whether a finding of a kind of process is of this suspect's place.
func (s *Suspect) Is(kind string, f *diff.Finding) bool {
	return s.Process == kind && slices.ContainsFunc(f.Rows, func(row *diff.Row) bool {
		return row.On() == s.Device && baseline.Fingerprint(row) == s.Fingerprint
	})
}

// begun reports whether the beginning of a process's run is over. Marks that tell neither steps nor time tell nothing of it.
func begun(r *diff.Result) bool {
	a := r.Series.Axis
	return a.Unit == series.Place || a.Length() >= beginning(r)
}

// beginning is how many steps, or seconds, of a process's run make no suspect.
func beginning(r *diff.Result) float64 {
	if r.Series.Axis.Unit == series.Second && r.Last.AwaitsSteps {
		return Awaiting
	}
	return Beginning
}

// lasted is where a finding has grown for Lasting times as long as it has until now.
func lasted(r *diff.Result, f *diff.Finding) float64 {
	x := r.Series.Axis.X
	from, last := x[0], x[len(x)-1]
	if h := series.HistoryOf(r.Series, r.Series.Site(f.Rows[0])); h != nil && h.Late {
		from = h.All.X[0]
	}
	return last + (Lasting-1)*(last-from)
}
