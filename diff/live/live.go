// Package live judges a run again and again while it goes on, so that looking often does not make alarms.
//
// A verdict is right by so many per cent where it is asked for once. Asked for at each snapshot, some moment of a
// clean run looks like a leak. So a verdict alone makes a suspect here, and what comes after it must bear it
// out: snapshots that the verdict has not seen. If the suspect does not leak, the next one is the highest of n no
// more often than one time in n, whatever its distribution (A. Rényi, Théorie des éléments saillants, 1962). A
// bet at those odds on a new highest one, for each snapshot, multiplies what was staked; it grows beyond 1/α with
// a chance of α at most, however long and often one looks (Ville's inequality; G. Shafer, Testing by betting, 2021).
//
// A container that fills does not fall either. So growth has to last for Lasting times as long as it took to become
// suspect; and nothing is a suspect before the run's beginning is over.
package live

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Alpha is the chance of a false alarm of one suspect whose memory has no trend.
const Alpha = 0.01

// Beginning is how many steps, or seconds, of a run make no suspect: what is allocated once, and what an epoch of a few
// steps gathers, grows in them. Of the labelled programs that do not leak three in five are called a leak at some step up
// to it, and one in fourteen after it (memdiag bench --live).
const Beginning = 32

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

// Suspect is what was called a leak once, in one process or several alike.
type Suspect struct {
	// Fingerprint is the baseline's; findings of other processes may have it too.
	Fingerprint string
	Process     string        // the kind of process, such as "loader worker"; "" for the one that a result is of
	Finding     *diff.Finding // of the last look that called it a leak
	// Since is the mark at which it was called a leak for the first time, and Alarmed that of its alarm.
	Since, Alarmed snapshot.Mark
	State          State

	until         float64   // where on the axis of marks the growth has lasted for long enough
	money         float64   // what has become of 1 that was staked
	paid, highest int       // bets that were settled, and those of them in which the mark was the highest
	bets          bool      // on the next mark
	sizes         []float64 // at the looks, of what has no series
}

// State is what the looks make of a suspect.
type State int

// States.
const (
	Suspected State = iota // snapshots to come decide
	Alarming               // they have
	Ended                  // they had, and it is no leak any more
)

// New begins to watch a run.
func New() *Watch { return &Watch{seen: make(map[string]snapshot.Mark)} }

// Suspects are all, in the order in which they became it.
func (w *Watch) Suspects() []*Suspect { return slices.Clone(w.suspects) }

// Look takes the judgement of a run as it is now, and returns the suspects whose state it changed, new ones too. Of a process
// without a newer mark than at the last look it changes nothing.
func (w *Watch) Look(r *diff.Result) (changed []*Suspect) {
	changed = w.process("", r)
	for _, c := range r.Children {
		changed = append(changed, w.process(diff.KindOf(c.Role), c.Result)...)
	}
	return changed
}

func (w *Watch) process(kind string, r *diff.Result) (changed []*Suspect) {
	last, before := r.Last.Mark, w.seen[kind]
	if last.Step == before.Step && last.Time.Equal(before.Time) {
		return nil
	}
	w.seen[kind] = last
	x := r.Series.Axis.X
	now := x[len(x)-1]
	held := make(map[*Suspect]*diff.Finding)
	for i := range r.Findings {
		f := &r.Findings[i]
		s := w.find(kind, f)
		if s == nil && f.Verdict == diff.Leak && begun(r) {
			s = &Suspect{Fingerprint: baseline.Fingerprint(f.Rows[0]), Process: kind, Since: last, until: lasted(r, f), money: 1}
			w.suspects = append(w.suspects, s)
			changed = append(changed, s)
		}
		if s != nil && (held[s] == nil || f.Verdict == diff.Leak && held[s].Verdict != diff.Leak) {
			held[s] = f
		}
	}
	for _, s := range w.suspects {
		if s.Process != kind {
			continue
		}
		f := held[s]
		if f != nil {
			level := s.levels(r, f)
			if s.bets {
				s.settle(level)
			}
		}
		s.bets = f != nil && f.Verdict == diff.Leak
		switch {
		case s.bets:
			s.Finding = f
			if s.State != Alarming && s.money >= 1/Alpha && now >= s.until {
				s.State, s.Alarmed = Alarming, last
				changed = append(changed, s)
			}
		case s.State == Alarming && (f == nil || f.Verdict != diff.Inconclusive):
			s.State = Ended
			changed = append(changed, s)
		}
	}
	return changed
}

// Growths takes the judgement of a run at a time after its beginning, and returns the growth of processes that no line explains, once
// for each kind of process: when all looks have seen it for Lasting times as long as the first took.
func (w *Watch) Growths(r *diff.Result, at time.Duration) (lasting []*diff.Reserve) {
	before := w.growths
	w.growths = make(map[string]*growth)
	for _, e := range r.Unaccounted() {
		kind := ""
		if e.Processes != nil {
			kind = e.Processes.Role
		}
		g := before[kind]
		if g == nil {
			g = &growth{since: max(at, Beginning*time.Second)}
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
	for _, row := range f.Rows {
		name := baseline.Fingerprint(row)
		for _, s := range w.suspects {
			if s.Process == kind && s.Fingerprint == name {
				return s
			}
		}
	}
	return nil
}

// begun reports whether the beginning of a process's run is over. Marks that tell neither steps nor time tell nothing of it.
func begun(r *diff.Result) bool {
	a := r.Series.Axis
	return a.Unit == series.Place || a.Length() >= Beginning
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

// levels are the bytes that a finding held at each mark after warm-up, or the number of what has no size, as the nodes of a
// graph. What has no series has what the looks saw.
func (s *Suspect) levels(r *diff.Result, f *diff.Finding) []float64 {
	held, known := make([]float64, len(r.Series.Marks)), false
	for _, row := range f.Rows {
		if site := r.Series.Site(row); site != nil {
			known = true
			for i, b := range site.Bytes {
				held[i] += float64(cmp.Or(int64(b), site.Blocks[i]))
			}
		}
	}
	if known {
		return held[min(len(held), r.Series.WarmUp()):]
	}
	now := f.After()
	s.sizes = append(s.sizes, float64(cmp.Or(int64(now.Bytes), now.Blocks)))
	return s.sizes
}

// settle pays the bet on the last of some levels. What is bet on a new highest one is the share of those before, as Laplace
// has it: leaks of each step make one at every mark, those of each epoch at some.
func (s *Suspect) settle(level []float64) {
	n := len(level)
	if n < 2 {
		return
	}
	odds, chance := 1/float64(n), float64(s.highest+1)/float64(s.paid+2)
	s.paid++
	if level[n-1] > slices.Max(level[:n-1]) {
		s.highest++
		s.money = math.Min(s.money*chance/odds, math.MaxFloat64)
		return
	}
	s.money *= (1 - chance) / (1 - odds)
}
