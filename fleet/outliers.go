package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff/trend"
)

// Rank is a row of the table ranks, as far as it is compared.
type Rank struct {
	Rank     int64   `json:"rank"`
	Host     string  `json:"host,omitempty"`
	Stage    int64   `json:"stage"`
	Replica  int64   `json:"replica"`
	Verdict  string  `json:"verdict"`
	Live     int64   `json:"live_bytes"`
	Growth   int64   `json:"growth_bytes"`
	Slope    float64 `json:"slope_bytes"`      // by step
	Second   float64 `json:"slope_per_second"` // 0 if there are no times
	RunsOut  int64   `json:"runs_out_step"`
	LastStep int64   `json:"last_step"`
}

// Group is what unlike ranks have in common: the smallest group that explains them.
type Group struct {
	Kind  string  `json:"kind"`  // all, stage, host, replica or rank
	Name  string  `json:"name"`  // "stage 2"
	Ranks []int64 `json:"ranks"` // ascending
	// Slope is the mean of its ranks, Peers the median of all; bytes by step.
	Slope float64 `json:"slope_bytes"`
	Peers float64 `json:"peers_slope_bytes"`
	// P is the chance of so large a difference among ranks that are alike, corrected for the number of
	// groups that were looked at (Benjamini–Hochberg).
	P float64 `json:"p"`

	score float64
}

// Limits for calling a group different.
const (
	// falseGroups is the share of false ones among the groups that are named.
	falseGroups = 0.01
	// leastShare is how much of the median's size the difference must be: a tenth of a per cent of
	// unlikeness may be certain, and means nothing.
	leastShare = 0.05
	// fewestPeers is how many ranks make a crowd.
	fewestPeers = 4
	// mostGroups is how many groups are named.
	mostGroups = 20
	// gap is how many times as far from the center as the others a single rank must be.
	gap = 3
	// smallGroup is the size below which a group's median says little: each of its ranks must be apart.
	smallGroup = 4
	// medianError is the standard error of the median of normal values, divided by the standard error of their mean.
	medianError = 1.2533
)

// Unlike finds the groups of ranks whose memory grows differently from that of their peers, the clearest first. The medians of groups
// are compared with the median of all ranks, in units of the median absolute deviation. Of groups that share ranks, it takes the one
// that differs most: a single leaking rank differs more than its host, and a leaking host more than each of its ranks.
func Unlike(ranks []Rank) []Group {
	var out []Group
	if all, ok := everyone(ranks); ok {
		return []Group{all}
	}
	left := slices.Clone(ranks)
	for len(left) >= fewestPeers && len(out) < mostGroups {
		g, ok := clearest(left, len(ranks))
		if !ok {
			break
		}
		out = append(out, g)
		left = slices.DeleteFunc(left, func(r Rank) bool { return slices.Contains(g.Ranks, r.Rank) })
	}
	return out
}

// everyone is all ranks, if most of them leak and none is unlike the others.
func everyone(ranks []Rank) (Group, bool) {
	leaks := 0
	g := Group{Kind: "all", Name: "all ranks"}
	for _, r := range ranks {
		if r.Verdict == "leak" {
			leaks++
		}
		g.Ranks = append(g.Ranks, r.Rank)
		g.Slope += r.Slope / float64(len(ranks))
	}
	slices.Sort(g.Ranks)
	if leaks*10 < len(ranks)*9 || len(ranks) < 2 {
		return g, false
	}
	_, unlike := clearest(ranks, len(ranks))
	return g, !unlike
}

// clearest is the group that differs most.
func clearest(ranks []Rank, of int) (Group, bool) {
	slopes := make([]float64, len(ranks))
	slope := make(map[int64]float64)
	for i, r := range ranks {
		slopes[i], slope[r.Rank] = r.Slope, r.Slope
	}
	center, scale := middle(slopes)
	apart := farApart(ranks, center)
	groups := candidates(ranks)
	p := make([]float64, len(groups))
	freedom := max(1, 0.37*float64(len(ranks)-1)) // the efficiency of the MAD among normal values
	for i := range groups {
		g := &groups[i]
		g.Peers = center
		var own []float64
		lone := false
		for _, rank := range g.Ranks {
			own = append(own, slope[rank])
			lone = lone || !apart[rank]
		}
		n := float64(len(own))
		d := nearest(own, center)
		g.score = math.Abs(d) / scale
		if n > 1 {
			g.score /= medianError * math.Sqrt(1/n+1/float64(len(ranks)))
		}
		p[i] = min(1, 2*trend.StudentTail(g.score, freedom))
		if math.Abs(d) < leastShare*math.Abs(center) || n < smallGroup && lone {
			g.score, p[i] = 0, 1
		}
	}
	best := -1
	for i, q := range trend.BenjaminiHochberg(p) {
		groups[i].P = q
		// Ties are of groups with the same ranks: the first kind is the narrower.
		if q <= falseGroups && (best < 0 || groups[i].score > groups[best].score) && 2*len(groups[i].Ranks) <= of+1 {
			best = i
		}
	}
	if best < 0 {
		return Group{}, false
	}
	return groups[best], true
}

// farApart are the ranks beyond the widest gap: each is farther from the center than all others by
// gap times. A single rank is only unlike if it is one of them. Slopes have heavy tails, so that the
// farthest of many ranks that are alike is far away, but seldom so far beyond the second: with the tails of
// Student's t with 4 degrees of freedom 31 of 1,000 runs of 512 ranks were named one, and 982 without this.
func farApart(ranks []Rank, center float64) map[int64]bool {
	order := slices.Clone(ranks)
	away := func(r Rank) float64 { return math.Abs(r.Slope - center) }
	slices.SortFunc(order, func(a, b Rank) int { return cmp.Compare(away(b), away(a)) })
	out := make(map[int64]bool)
	for k := range len(order) / 2 {
		if away(order[k]) < gap*max(away(order[k+1]), 1) {
			continue
		}
		for _, r := range order[:k+1] {
			out[r.Rank] = true
		}
		break
	}
	return out
}

// nearest is how far the median is from the center; of an even number, of the two in the middle the
// nearer one. So the half of a group has to be unlike, not a few of it.
func nearest(values []float64, center float64) float64 {
	v := slices.Sorted(slices.Values(values))
	low, high := v[(len(v)-1)/2]-center, v[len(v)/2]-center
	if math.Abs(low) < math.Abs(high) {
		return low
	}
	return high
}

// middle is the median, and the standard deviation of a normal distribution with the same median absolute deviation. For an even number
// of values it takes the lower median, and deviations only of values that are not above it. So the measure still describes normal ranks
// if half of all ranks leak.
func middle(values []float64) (center, scale float64) {
	v := slices.Sorted(slices.Values(values))
	half := (len(v) - 1) / 2
	center = v[half]
	var below []float64
	for _, x := range v[:half+1] {
		below = append(below, center-x)
	}
	slices.Sort(below)
	scale = 1.4826 * below[len(below)/2]
	// Slopes of a rank that does not grow are exactly 0: then a byte a step is the scale.
	return center, max(scale, 1, 1e-4*math.Abs(center))
}

// candidates are all groups: each rank, replica, host and stage, the narrower kinds first.
func candidates(ranks []Rank) []Group {
	var out []Group
	for _, kind := range []struct {
		name string
		key  func(*Rank) string
	}{
		{"rank", func(r *Rank) string { return fmt.Sprint(r.Rank) }},
		{"replica", func(r *Rank) string { return numbered(r.Replica) }},
		{"host", func(r *Rank) string { return r.Host }},
		{"stage", func(r *Rank) string { return numbered(r.Stage) }},
	} {
		index := make(map[string]int)
		from := len(out)
		for i := range ranks {
			r := &ranks[i]
			key := kind.key(r)
			if key == "" {
				continue
			}
			at, ok := index[key]
			if !ok {
				at = len(out)
				index[key] = at
				out = append(out, Group{Kind: kind.name, Name: kind.name + " " + key})
			}
			g := &out[at]
			g.Ranks = append(g.Ranks, r.Rank)
			g.Slope += r.Slope
		}
		if len(out)-from < 2 && kind.name != "rank" { // one host is no group among others
			out = out[:from]
			continue
		}
		for i := from; i < len(out); i++ {
			out[i].Slope /= float64(len(out[i].Ranks))
			slices.Sort(out[i].Ranks)
		}
	}
	return out
}

func numbered(n int64) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Ranks are those of a run, ascending.
func (s *Store) Ranks(run string) ([]Rank, error) {
	var out []Rank
	for _, p := range s.Parts {
		if !slices.ContainsFunc(p.Runs, func(r Run) bool { return r.ID == run }) {
			continue
		}
		err := p.scan("ranks", []string{"run", "rank", "host", "stage", "replica", "verdict", "live_bytes", "growth_bytes", "slope_bytes", "slope_per_second", "runs_out_step", "last_step"}, is(run), func(b *Batch) error {
			for i := range b.Rows {
				if b.Text(0, i) == run {
					out = append(out, Rank{b.Int(1, i), b.Text(2, i), b.Int(3, i), b.Int(4, i), b.Text(5, i), b.Int(6, i), b.Int(7, i), b.Float(8, i), b.Float(9, i), b.Int(10, i), b.Int(11, i)})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return out, nil
}

// Dying is a rank whose memory will be full.
type Dying struct {
	Run  Run   `json:"run"`
	Rank int64 `json:"rank"`
	Step int64 `json:"runs_out_step"`
	At   int64 `json:"runs_out_unix"` // on its machine's clock; 0 if times are unknown
	// Left is the time from the rank's last snapshot until then, in seconds on one clock; -1 if times are unknown.
	Left float64 `json:"seconds_left"`
}

// before reports whether a's memory is full first: by time, which all runs have in common, else by step.
func (d Dying) before(o Dying) bool {
	if (d.Left < 0) != (o.Left < 0) {
		return o.Left < 0
	}
	if d.Left != o.Left {
		return d.Left < o.Left
	}
	return d.Step < o.Step
}

// Next lists the runs that have not ended and whose memory will be full, the soonest first; for each run the rank that is full first.
// The remaining time is counted from its last snapshot, since clocks of machines differ, and a run may have been added long after.
func (s *Store) Next() ([]Dying, error) {
	first := make(map[string]Dying)
	for _, p := range s.Parts {
		runs := make(map[string]Run)
		unfinished := func(r *Run) bool { return r.Status == "unfinished" }
		for _, r := range p.Runs {
			if unfinished(&r) {
				runs[r.ID] = r
			}
		}
		if len(runs) == 0 {
			continue
		}
		type rank struct {
			run  string
			rank int64
		}
		last := make(map[rank]time.Time)
		err := p.scan("series", []string{"run", "rank", "time"}, unfinished, func(b *Batch) error {
			for i := range b.Rows {
				if k := (rank{b.Text(0, i), b.Int(1, i)}); b.Time(2, i).After(last[k]) {
					last[k] = b.Time(2, i)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		err = p.scan("ranks", []string{"run", "rank", "runs_out_step", "runs_out_at"}, unfinished, func(b *Batch) error {
			for i := range b.Rows {
				r, ok := runs[b.Text(0, i)]
				d := Dying{r, b.Int(1, i), b.Int(2, i), 0, -1}
				if at := b.Time(3, i); !at.IsZero() {
					d.At = at.Unix()
					if since := last[rank{r.ID, d.Rank}]; !since.IsZero() {
						d.Left = max(0, at.Sub(since).Seconds())
					}
				}
				if old, seen := first[r.ID]; ok && (d.Step >= 0 || d.At > 0) && (!seen || d.before(old)) {
					first[r.ID] = d
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var out []Dying
	for _, id := range sorted(first) {
		out = append(out, first[id])
	}
	slices.SortStableFunc(out, func(a, b Dying) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	return out, nil
}

// Find lists the runs that a word names: an id or its beginning, or a name.
func (s *Store) Find(word string) []Run {
	var out []Run
	for _, r := range s.Runs() {
		if r.ID == word || r.Name == word || len(word) >= 4 && strings.HasPrefix(r.ID, word) {
			out = append(out, r)
		}
	}
	return out
}
