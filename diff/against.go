package diff

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Comparison compares a finding's growth with that of the same stacks in a run that is known to be good.
type Comparison struct {
	Match Match // the level at which the stacks were found there; "" if they were not
	Good  Rate  // there
	// Excess is how much faster the growth is here, with an interval.
	Excess trend.Slope

	among int // rows here that are compared together with those of the finding
}

// baseline is the good run, prepared for comparisons.
type baseline struct {
	result *Result // of the good run
	keys   [2]keyer
	rows   [len(levels)]map[placeKey][2][]*Row // rows of this run and of the good run
	// anywhere has the kinds of which each run uses exactly one device, whatever its index.
	anywhere map[snapshot.DeviceKind]bool
}

// placeKey identifies what counts as one site in both runs, at some level. Where stacks are equal at a level, block
// sizes may differ: those of two lines of one function that an edit has moved.
type placeKey struct {
	device series.DeviceID
	key    snapshot.Hash
	size   float64 // bytes a block; 0 for any size
}

// blockSize is the mean size of the row's live blocks, or else of its earlier ones.
func blockSize(row *Row) float64 {
	t := row.After
	if t.Blocks == 0 {
		t = row.Before
	}
	return float64(t.Bytes) / float64(max(1, t.Blocks))
}

// newBaseline returns an error about the good run if it cannot be compared with this one.
func (r *Result) newBaseline(good *snapshot.Run) (*baseline, error) {
	if len(good.Snapshots) < 2 {
		return nil, errors.New("a run of fewer than two snapshots has no growth to compare with")
	}
	if why, _ := strangers(good); why != "" {
		return nil, fmt.Errorf("its growth cannot be judged: %s", why)
	}
	first, last := good.Snapshots[0], good.Snapshots[len(good.Snapshots)-1]
	b := &baseline{
		result:   &Result{First: first, Last: last, Rows: series.Pair(first, last), Series: series.Collect(good), run: good},
		anywhere: make(map[snapshot.DeviceKind]bool),
	}
	if here, there := r.Series.Axis.Unit, b.result.Series.Axis.Unit; here != there {
		return nil, fmt.Errorf("its growth is per %s, the judged run's per %s: they cannot be compared", there, here)
	}
	here, there := devicesOf(r.Rows), devicesOf(b.result.Rows)
	for kind, indices := range here {
		b.anywhere[kind] = len(indices) == 1 && len(there[kind]) == 1
	}
	common, stacks := false, 0
	for side, rows := range [][]Row{r.Rows, b.result.Rows} {
		b.keys[side] = newKeyer(rows)
		for at, level := range levels {
			if b.rows[at] == nil {
				b.rows[at] = make(map[placeKey][2][]*Row)
			}
			for i := range rows {
				if key, ok := b.keys[side].key(&rows[i], level); ok {
					for _, size := range []float64{blockSize(&rows[i]), 0} {
						k := placeKey{b.deviceOf(&rows[i]), key, size}
						sides := b.rows[at][k]
						sides[side] = append(sides[side], &rows[i])
						b.rows[at][k] = sides
						common = common || len(rows[i].Frames) > 0 && len(sides[0]) > 0 && len(sides[1]) > 0
					}
				}
			}
		}
		if slices.ContainsFunc(rows, func(row Row) bool { return len(row.Frames) > 0 }) {
			stacks++
		}
	}
	if !common && stacks == 2 {
		return nil, errors.New("it shares no stack with the judged run: it is of another program, or of other devices")
	}
	return b, nil
}

// devicesOf returns the indices of the rows' devices, by kind.
func devicesOf(rows []Row) map[snapshot.DeviceKind]map[int]bool {
	out := make(map[snapshot.DeviceKind]map[int]bool)
	for i := range rows {
		d := rows[i].Device
		if out[d.Kind] == nil {
			out[d.Kind] = make(map[int]bool)
		}
		out[d.Kind][d.Index] = true
	}
	return out
}

func (b *baseline) deviceOf(row *Row) series.DeviceID {
	d := row.On()
	if b.anywhere[d.Kind] {
		d.Index = 0
	}
	return d
}

// compare compares rows with the good run, at the strongest level at which it has all of them. Rows that are equal at
// that level are compared together. If lines have moved, a different line may stand at the same place, so excess
// growth counts only if the level of functions confirms it.
func (r *Result) compare(b *baseline, rows []*Row) *Comparison {
	c := r.compareFrom(b, rows, Exact)
	if c.Excess.Low > 0 && (c.Match == Exact || c.Match == Lines) {
		if moved := r.compareFrom(b, rows, Functions); moved.Match != "" && moved.Excess.Low <= 0 {
			return moved
		}
	}
	return c
}

func (r *Result) compareFrom(b *baseline, rows []*Row, strongest Match) *Comparison {
	from := slices.Index(levels[:], strongest)
	for at, level := range levels[from:] {
		for _, sized := range []bool{true, false} {
			if here, there := b.same(rows, from+at, sized); there != nil {
				good := b.result.rateOf(there)
				return &Comparison{Match: level, Good: good, Excess: difference(r.rateOf(here).Bytes, good.Bytes), among: len(here) - len(rows)}
			}
		}
	}
	rate := r.rateOf(rows)
	return &Comparison{Good: Rate{Unit: rate.Unit}, Excess: rate.Bytes}
}

// same returns the rows that equal the given ones at a level, here and in the good run; nil if the good run lacks
// some.
func (b *baseline) same(rows []*Row, at int, sized bool) (here, there []*Row) {
	seen := make(map[placeKey]bool)
	for _, row := range rows {
		key, ok := b.keys[0].key(row, levels[at])
		k := placeKey{device: b.deviceOf(row), key: key}
		if sized {
			k.size = blockSize(row)
		}
		sides := b.rows[at][k]
		if !ok || len(sides[1]) == 0 {
			return nil, nil
		}
		if !seen[k] {
			seen[k] = true
			here, there = append(here, sides[0]...), append(there, sides[1]...)
		}
	}
	return here, there
}

// holdAgainst judges by the good run: growth that is as fast there is intended.
func (r *Result) holdAgainst(b *baseline, grown []cluster) {
	for i := range grown {
		j := &grown[i].j
		if j.Verdict != Leak && j.Verdict != Inconclusive {
			continue
		}
		c := r.compare(b, grown[i].rows)
		grown[i].against = c
		more := fmt.Sprintf("%s a %s more than in the known-good run (%s to %s; %s)", signed(c.Excess.Value), j.Rate.Unit, signed(c.Excess.Low), signed(c.Excess.High), c.Match.matched())
		switch {
		case c.Match == "" && len(grown[i].rows) > 1:
			j.Because("the known-good run lacks some of its stacks")
		case c.Match == "":
			j.Because("the known-good run has no such stack")
		case c.Excess.Low > 0 && (c.among == 0 || c.Excess.Value > series.AlikeRates*math.Abs(j.Rate.Bytes.Value)):
			j.Because("it grows by %s", more)
		case c.Excess.Value <= series.AlikeRates*math.Abs(j.Rate.Bytes.Value):
			j.Call(Bounded, Strong, "the known-good run grows as fast there (%s)", c.Match.matched())
		default:
			j.Call(Inconclusive, Weak, "it may grow no faster than in the known-good run: %s", more)
		}
	}
}

func signed(bytes float64) string {
	if bytes < 0 {
		return snapshot.FormatBytes(bytes)
	}
	return "+" + snapshot.FormatBytes(bytes)
}

// difference is a - b. The half widths of its interval are the roots of the summed squares of both.
func difference(a, b trend.Slope) trend.Slope {
	d := a.Value - b.Value
	return trend.Slope{
		Value: d, Low: d - math.Hypot(a.Value-a.Low, b.High-b.Value), High: d + math.Hypot(a.High-a.Value, b.Value-b.Low),
		N: min(a.N, b.N),
	}
}
