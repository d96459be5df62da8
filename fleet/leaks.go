package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Leak is one fingerprint that leaks in a fleet.
type Leak struct {
	Fingerprint string    `json:"fingerprint"`
	Place       string    `json:"place"` // of its largest finding
	Cause       string    `json:"cause,omitempty"`
	Runs        int       `json:"runs"`
	Ranks       int64     `json:"ranks"` // leaking ranks, over all runs
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`
	FirstCommit string    `json:"first_commit,omitempty"` // of the run where it was first seen
	LastCommit  string    `json:"last_commit,omitempty"`
	Libraries   []string  `json:"libraries"`
	// Rates are bytes by second of a rank.
	RateMedian float64 `json:"rate_median"`
	RateHigh   float64 `json:"rate_p90"`
	RateMost   float64 `json:"rate_most"`
	// Leaked is what it had gathered at the end of all runs, and LeakedHours that over the time for
	// which it was held, in byte hours.
	Leaked      int64   `json:"leaked_bytes"`
	LeakedHours float64 `json:"leaked_byte_hours"`
	// GPUHours are those of runs that ran out of memory and in which it leaked most: what dying cost.
	GPUHours float64 `json:"gpu_hours_lost"`

	perRun map[string]*runLeak
	rates  histogram
	lead   lead
}

// runLeak is one fingerprint in one run.
type runLeak struct {
	ranks, growth int64
	rate          float64 // sum over ranks, bytes by second
	rank          int64   // the last rank that was counted; rows of a rank are adjacent
}

// lead is the largest finding, which names the leak.
type lead struct {
	part       *Part
	group, row int
	run        *Run // on a server
	growth     int64
}

// before makes the choice among equals the same in each call.
func (l lead) before(o lead) bool {
	if l.part == nil || o.part == nil {
		return o.part == nil && l.part != nil
	}
	if l.run != nil && o.run != nil {
		return cmp.Or(cmp.Compare(o.growth, l.growth), l.run.When().Compare(o.run.When()), cmp.Compare(l.run.ID, o.run.ID)) < 0
	}
	return cmp.Or(cmp.Compare(o.growth, l.growth), cmp.Compare(l.part.dir, o.part.dir), cmp.Compare(l.group, o.group), cmp.Compare(l.row, o.row)) < 0
}

// histogram counts rates in steps of a sixteenth of an octave, so that a quantile is within 5 %.
type histogram struct {
	counts [64 * 16]int32
	n      int64
	most   float64
}

func (h *histogram) add(rate float64) {
	step := int64(0)
	if rate >= 1 {
		step = int64(16 * min(math.Log2(rate), mostSteps)) // a damaged file may have any rate
	}
	h.put(step, 1, rate)
}

// put adds n values to one step of the histogram. The largest of them is most.
func (h *histogram) put(step, n int64, most float64) {
	h.counts[min(max(step, 0), int64(len(h.counts)-1))] += int32(n)
	h.n += n
	h.most = max(h.most, most)
}

// mostSteps is the last step, in octaves.
const mostSteps = float64(64*16-1) / 16

// stepInSQL is the step of a rate in a column. Servers before 21.9 compute the logarithm for rates below 1, too.
func stepInSQL(column string) string {
	return fmt.Sprintf("if(%s >= 1, toInt64(16 * least(log2(greatest(%s, 1)), %v)), toInt64(0))", column, column, mostSteps)
}

func (h *histogram) join(o *histogram) {
	for i := range o.counts {
		h.counts[i] += o.counts[i]
	}
	h.n += o.n
	h.most = max(h.most, o.most)
}

func (h *histogram) quantile(q float64) float64 {
	left := int64(math.Ceil(q * float64(h.n)))
	for i := range h.counts {
		if left -= int64(h.counts[i]); left <= 0 {
			return min(math.Exp2((float64(i)+0.5)/16), h.most)
		}
	}
	return h.most
}

// Leaks are the fleet's leaking fingerprints, the most leaked byte hours first. With a filter only
// its runs count.
func (s *Store) Leaks(filter func(*Run) bool) ([]Leak, error) {
	runs := make(map[string]*Run)
	for _, p := range s.Parts {
		for i := range p.Runs {
			if r := &p.Runs[i]; filter == nil || filter(r) {
				runs[r.ID] = r
			}
		}
	}
	all, err := s.gathered(runs)
	if err != nil {
		return nil, err
	}
	out := make([]Leak, 0, len(all))
	worst := worstOf(all)
	for _, l := range all {
		l.conclude(runs, worst)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.LeakedHours, a.LeakedHours), cmp.Compare(b.Leaked, a.Leaked), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return out, nil
}

// gathered are the leaks of some runs, by fingerprint.
func (s *Store) gathered(runs map[string]*Run) (map[string]*Leak, error) {
	if p := s.Parts; len(p) == 1 && p[0].server != nil {
		return p[0].summed(runs)
	}
	maps := make([]map[string]*Leak, workers())
	for i := range maps {
		maps[i] = make(map[string]*Leak)
	}
	err := s.Scan("findings", []string{"run", "fingerprint", "verdict", "rate_per_second", "growth_bytes", "rank"}, func(worker int, b *Batch) error {
		gather(maps[worker], b, runs)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := maps[0]
	for _, m := range maps[1:] {
		for name, l := range m {
			if all[name] == nil {
				all[name] = l
				continue
			}
			all[name].join(l)
		}
	}
	return all, nil
}

// gather adds a row group's leaks. Texts are compared by their places in its dictionaries.
func gather(into map[string]*Leak, b *Batch, runs map[string]*Run) {
	run, print, verdict, rate, growth := b.columns[0], b.columns[1], b.columns[2], b.columns[3], b.columns[4]
	leaks := slices.Index(verdict.Texts, "leak")
	if leaks < 0 || b.Rows == 0 {
		return
	}
	wanted := make([]bool, len(run.Texts))
	for i, id := range run.Texts {
		_, wanted[i] = runs[id]
	}
	if !b.Part.all { // runs that count from another part
		for i, id := range run.Texts {
			wanted[i] = wanted[i] && slices.ContainsFunc(b.Part.Runs, func(r Run) bool { return r.ID == id })
		}
	}
	// One entry for each pair of fingerprint and run that occurs; most row groups have few runs.
	byPrint := make([]*Leak, len(print.Texts))
	byPair := make(map[uint64]*runLeak)
	lastKey, last := ^uint64(0), (*runLeak)(nil)
	verdicts, prints, ids := places(verdict, b.Rows), places(print, b.Rows), places(run, b.Rows)
	for row := range b.Rows {
		if int(verdicts[row]) != leaks || !wanted[ids[row]] {
			continue
		}
		l := byPrint[prints[row]]
		if l == nil {
			name := print.Texts[prints[row]]
			if l = into[name]; l == nil {
				l = &Leak{Fingerprint: name, perRun: make(map[string]*runLeak)}
				into[name] = l
			}
			byPrint[prints[row]] = l
		}
		if key := uint64(prints[row])<<32 | uint64(ids[row]); key != lastKey {
			lastKey, last = key, byPair[key]
			if last == nil {
				id := run.Texts[ids[row]]
				if last = l.perRun[id]; last == nil {
					last = &runLeak{}
					l.perRun[id] = last
				}
				byPair[key] = last
			}
		}
		g, v := growth.Int(row), rate.Float(row)
		if k := b.Int(5, row); last.ranks == 0 || k != last.rank { // two lines of a function have one fingerprint
			last.ranks, last.rank = last.ranks+1, k
		}
		last.growth += g
		last.rate += v
		l.rates.add(v)
		if g > l.lead.growth || l.lead.part == nil {
			l.lead = lead{part: b.Part, group: b.Group, row: row, growth: g}
		}
	}
}

func (l *Leak) join(o *Leak) {
	for id, r := range o.perRun {
		if own := l.perRun[id]; own != nil {
			own.ranks, own.growth, own.rate = own.ranks+r.ranks, own.growth+r.growth, own.rate+r.rate
		} else {
			l.perRun[id] = r
		}
	}
	l.rates.join(&o.rates)
	if o.lead.before(l.lead) {
		l.lead = o.lead
	}
}

// worstOf is the fingerprint that leaked most in each run.
func worstOf(all map[string]*Leak) map[string]string {
	worst, most := make(map[string]string), make(map[string]int64)
	for name, l := range all {
		for id, r := range l.perRun {
			if old := worst[id]; old == "" || r.growth > most[id] || r.growth == most[id] && name < old {
				worst[id], most[id] = name, r.growth
			}
		}
	}
	return worst
}

// conclude sums up what was gathered by run.
func (l *Leak) conclude(runs map[string]*Run, worst map[string]string) {
	l.Runs = len(l.perRun)
	l.Libraries = []string{}
	for _, id := range sorted(l.perRun) {
		in, r := l.perRun[id], runs[id]
		l.Ranks += in.ranks
		l.Leaked += in.growth
		l.LeakedHours += float64(in.growth) * r.Seconds / 3600 / 2 // it grew from nothing
		if worst[id] == l.Fingerprint && r.Status == OutOfMemory {
			l.GPUHours += float64(r.GPUs) * r.Seconds / 3600
		}
		when := r.When()
		if l.FirstSeen.IsZero() || when.Before(l.FirstSeen) {
			l.FirstSeen, l.FirstCommit = when, r.Commit
		}
		if !when.Before(l.LastSeen) {
			l.LastSeen, l.LastCommit = when, r.Commit
		}
		if !slices.Contains(l.Libraries, r.Library) {
			l.Libraries = append(l.Libraries, r.Library)
		}
	}
	slices.Sort(l.Libraries)
	l.RateMedian, l.RateHigh, l.RateMost = l.rates.quantile(0.5), l.rates.quantile(0.9), l.rates.most
}

// Name reads the line and the cause of leaks: those that are shown.
func (s *Store) Name(leaks []Leak) error {
	return atLeads(leaks, []string{"place", "cause"}, func(i int, b *Batch, row int) {
		leaks[i].Place, leaks[i].Cause = b.Text(0, row), b.Text(1, row)
	})
}

// atLeads calls see with the largest finding of each leak. A row group is read once.
func atLeads(leaks []Leak, columns []string, see func(i int, b *Batch, row int)) error {
	if len(leaks) > 0 && leaks[0].lead.part.server != nil {
		return leaks[0].lead.part.leads(leaks, columns, see)
	}
	order := make([]int, len(leaks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := leaks[i].lead, leaks[j].lead
		return cmp.Or(cmp.Compare(a.part.dir, b.part.dir), cmp.Compare(a.group, b.group))
	})
	var b *Batch
	for _, i := range order {
		at := leaks[i].lead
		if b == nil || b.Part != at.part || b.Group != at.group {
			f, found, err := at.part.open("findings", columns)
			if err != nil {
				return err
			}
			b, err = at.part.batch(f, found, at.group)
			_ = f.Close()
			if err != nil {
				return err
			}
		}
		see(i, b, at.row)
	}
	return nil
}

// Change is how a fingerprint leaks at one commit and at another. Rates are bytes per second, averaged over leaking ranks; 0 if it does
// not leak.
type Change struct {
	Fingerprint string  `json:"fingerprint"`
	Place       string  `json:"place"`
	State       string  `json:"state"`         // new, worse, same, better, fixed, not judged
	Why         string  `json:"why,omitempty"` // … not judged, a clause
	Before      float64 `json:"rate_before"`
	After       float64 `json:"rate_after"`
	// Saved is what the runs of the second commit would have leaked in addition at the first one's
	// rate, in bytes; negative for what they leak more.
	Saved int64 `json:"saved_bytes"`
}

// much is by how much a rate is another: pace and load of machines move rates by less.
const much = 1.25

// Compare is how leaks changed between two commits, the largest change first.
func (s *Store) Compare(before, after string) (changes []Change, runsBefore, runsAfter int, err error) {
	at := func(commit string) ([]Leak, []Run, error) {
		var of []Run
		for _, r := range s.Runs() {
			if commit != "" && r.Commit == commit {
				of = append(of, r)
			}
		}
		leaks, err := s.Leaks(func(r *Run) bool { return commit != "" && r.Commit == commit })
		return leaks, of, err
	}
	old, oldRuns, err := at(before)
	if err != nil {
		return nil, 0, 0, err
	}
	next, nextRuns, err := at(after)
	if err != nil {
		return nil, 0, 0, err
	}
	seconds, ranks := 0., int64(0) // of the second commit's runs
	for _, r := range nextRuns {
		seconds += r.Seconds * float64(r.Ranks)
		ranks += r.Ranks
	}
	oldRanks := int64(0)
	for _, r := range oldRuns {
		oldRanks += r.Ranks
	}
	mean := func(l *Leak, of int64) float64 { // over all ranks
		sum := 0.
		for _, r := range l.perRun {
			sum += r.rate
		}
		return sum / float64(max(of, 1))
	}
	index := make(map[string]int)
	for i := range old {
		index[old[i].Fingerprint] = len(changes)
		changes = append(changes, Change{Fingerprint: old[i].Fingerprint, State: "fixed", Before: mean(&old[i], oldRanks)})
	}
	for i := range next {
		l := &next[i]
		at, ok := index[l.Fingerprint]
		if !ok {
			at = len(changes)
			changes = append(changes, Change{Fingerprint: l.Fingerprint})
		}
		c := &changes[at]
		c.After = mean(l, ranks)
		switch {
		case !ok:
			c.State = "new"
		case c.After > much*c.Before:
			c.State = "worse"
		case c.After*much < c.Before:
			c.State = "better"
		default:
			c.State = "same"
		}
	}
	why, err := s.unproven(gone(old, changes), after)
	if err != nil {
		return nil, 0, 0, err
	}
	for i := range changes {
		if c := &changes[i]; why[c.Fingerprint] != "" {
			c.State, c.Why = "not judged", why[c.Fingerprint]
		}
	}
	for i := range changes {
		c := &changes[i]
		if ranks > 0 && c.Why == "" {
			c.Saved = int64((c.Before - c.After) * seconds)
		}
	}
	named := slices.Concat(old, next)
	if err := s.Name(named); err != nil {
		return nil, 0, 0, err
	}
	places := make(map[string]string)
	for i := range named {
		places[named[i].Fingerprint] = named[i].Place
	}
	for i := range changes {
		changes[i].Place = places[changes[i].Fingerprint]
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.After-b.Before), math.Abs(a.After-a.Before)), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return changes, len(oldRuns), len(nextRuns), nil
}

// gone are the leaks that the second commit does not have; the changes begin with one for each.
func gone(old []Leak, changes []Change) (out []Leak) {
	for i := range old {
		if changes[i].State == "fixed" {
			out = append(out, old[i])
		}
	}
	return out
}
