// Package live judges a run repeatedly while it goes on, without making false alarms more likely.
//
// A verdict has a known error rate if it is asked for once. If it is asked for at each snapshot, some moment of a
// clean run looks like a leak. So a verdict only makes a suspect here, and later snapshots, which the verdict has not
// seen, must confirm it. If a suspect's memory has no trend, each change is at least as likely to fall, or to stay
// below the highest level since the suspicion began, as to exceed that level: this holds for a random walk, for noise
// around a level, and for what returns to a level. So there is a bet at even odds on a new highest level at each
// snapshot, which multiplies the stake. The stake grows beyond 1/α with a chance of at most α, however long and often
// one looks (Ville's inequality; G. Shafer, Testing by betting, 2021). The bet is fixed before the snapshot comes:
// the sites, the process, the level to exceed and the stake. A site that has gone by then loses.
//
// A suspicion is withdrawn if the growth has stopped; an alarm then ends. The n-th suspicion of one place has a
// chance of 3α/4ⁿ, so that all of them together make a false alarm with a chance of at most α.
//
// A container that fills does not fall, either. So growth must last Lasting times as long as it took to become
// suspect, and nothing is a suspect before the beginning of the run is over.
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

// Alpha is the chance of a false alarm for a place whose memory has no trend.
const Alpha = 0.01

// stopped is after how many consecutive looks with a verdict other than leak or inconclusive growth counts as
// stopped.
const stopped = 3

// Beginning is how many steps, or seconds, of a run make no suspect: memory that is allocated once, and memory of an
// epoch of a few steps, grows in them. Of the labelled programs that do not leak, three in five are called a leak at
// some step up to it, and one in fourteen after it (memdiag bench --live).
const Beginning = 32

// Awaiting is the same, in seconds, for a run by the clock whose program has yet to take its first step: it loads its
// data, which grows like a leak. Few programs load for longer, and a program whose steps are not observed is judged
// from then on.
const Awaiting = 1800

// Lasting is how many times as long as it took to become suspect the growth must last in all. With 2, two of 370 such
// programs have an alarm, caused by containers that fill; with 2.5 one, and with 3 none. A leak in each step has an
// alarm at step 64, 80 or 96.
const Lasting = 3

// Watch is the state of a run after the looks at it so far.
type Watch struct {
	suspects []*Suspect               // in the order of their first suspicion
	seen     map[string]snapshot.Mark // the newest mark of each process, by its kind
	growths  map[string]*growth       // growth without a line, by the kind of process
}

// growth is the growth of a process, as long as consecutive looks see it.
type growth struct {
	since time.Duration // from the run's beginning
	told  bool
}

// Suspect is a place that was called a leak once, in one process or several alike, on one device.
type Suspect struct {
	// Fingerprint is that of package baseline; findings of other processes and devices may have the same.
	Fingerprint string
	Process     string // the kind of process, such as "loader worker"; "" for the result's own process
	Device      series.DeviceID
	Finding     *diff.Finding // from the last look that called it a leak
	// Since is the mark at which this suspicion began.
	Since snapshot.Mark
	State State

	times  int           // how often it was suspected
	missed int           // consecutive looks at which it had stopped
	until  float64       // the place on the axis at which the growth has lasted long enough
	pid    int           // of the process in the last look that called it a leak
	seen   snapshot.Mark // the last mark of that process
	test   betting
	bet    *bet      // on the next mark; nil for none
	sizes  []float64 // sizes at the looks of this suspicion, for memory without a series
}

// State is the state of a suspect.
type State int

// States.
const (
	Suspected State = iota // later snapshots decide
	Alarming               // later snapshots confirmed it
	Ended                  // it was an alarm, and no longer leaks
	Withdrawn              // it stopped before an alarm
)

// New begins to watch a run.
func New() *Watch { return &Watch{seen: make(map[string]snapshot.Mark)} }

// Suspects returns all suspects, in the order of their first suspicion.
func (w *Watch) Suspects() []*Suspect { return slices.Clone(w.suspects) }

// Look takes the judgement of a run as it is now, and returns the suspects whose state changed, including new ones. A
// process without a newer mark than at the last look changes nothing.
func (w *Watch) Look(r *diff.Result) (changed []*Suspect) {
	changed = w.process("", 0, r.Run(), r)
	for _, c := range r.Children {
		changed = append(changed, w.process(diff.KindOf(c.Role), c.PID, r.Run(), c.Result)...)
	}
	return append(changed, w.quiet(r)...)
}

// process checks one process of a run, or one that represents several alike.
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

// Over reports whether the suspicion has ended or was withdrawn.
func (s *Suspect) Over() bool { return s.State == Ended || s.State == Withdrawn }

// suspect begins a suspicion: earlier winnings no longer count.
func (s *Suspect) suspect(since snapshot.Mark, until float64) {
	s.times++
	s.State, s.Since, s.until = Suspected, since, until
	s.test, s.missed, s.sizes = betting{money: 1}, 0, nil
}

// look takes what a look found of a suspect, nil for nothing, and reports whether the suspect's state changed.
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

// Growths takes the judgement of a run at a time after its beginning. It returns the growth of processes that no line
// explains, once for each kind of process: when all looks have seen it for Lasting times as long as the first took.
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

// find is the suspect for a finding of a kind of process: one that has any of its places; nil for none.
func (w *Watch) find(kind string, f *diff.Finding) *Suspect {
	for _, s := range w.suspects {
		if s.Is(kind, f) {
			return s
		}
	}
	return nil
}

// Is reports whether a finding of a kind of process is at this suspect's place.
func (s *Suspect) Is(kind string, f *diff.Finding) bool {
	return s.Process == kind && slices.ContainsFunc(f.Rows, func(row *diff.Row) bool {
		return row.On() == s.Device && baseline.Fingerprint(row) == s.Fingerprint
	})
}

// begun reports whether the beginning of a process's run is over. It is true for marks without steps or times.
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

// lasted is the place on the axis at which a finding has grown for Lasting times as long as until now.
func lasted(r *diff.Result, f *diff.Finding) float64 {
	x := r.Series.Axis.X
	from, last := x[0], x[len(x)-1]
	if h := series.HistoryOf(r.Series, r.Series.Site(f.Rows[0])); h != nil && h.Late {
		from = h.All.X[0]
	}
	return last + (Lasting-1)*(last-from)
}
