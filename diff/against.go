package diff

import (
	"fmt"
	"math"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Comparison holds a finding's growth against that of the same stacks in a run
// that is known to be good.
type Comparison struct {
	Match Match // at which the stacks were found there; "" where they were not
	Good  Rate  // there
	// Excess is by how much a step grows by more here, with an interval.
	Excess trend.Slope
}

// baseline is the good run, ready to be asked.
type baseline struct {
	result *Result // of the good run; nil for one of no snapshots
	keys   [2]keyer
	rows   [len(levels)]map[deviceKey][2][]*Row // here, and there
}

// deviceKey names what is taken for one site in both runs, at some level.
type deviceKey struct {
	device device
	key    snapshot.Hash
}

func (r *Result) newBaseline(good *snapshot.Run) *baseline {
	first, last := good.Snapshots[0], good.Snapshots[len(good.Snapshots)-1]
	b := &baseline{result: &Result{First: first, Last: last, Rows: Pair(first, last), Series: Collect(good), run: good}}
	for side, rows := range [][]Row{r.Rows, b.result.Rows} {
		b.keys[side] = newKeyer(rows)
		for at, level := range levels {
			if b.rows[at] == nil {
				b.rows[at] = make(map[deviceKey][2][]*Row)
			}
			for i := range rows {
				if key, ok := b.keys[side].key(&rows[i], level); ok {
					k := deviceKey{deviceOf(&rows[i]), key}
					sides := b.rows[at][k]
					sides[side] = append(sides[side], &rows[i])
					b.rows[at][k] = sides
				}
			}
		}
	}
	return b
}

// compare holds rows against the good run, at the strongest level that has all of
// them there. What a level cannot tell apart is compared together.
func (r *Result) compare(b *baseline, rows []*Row) *Comparison {
level:
	for at, level := range levels {
		var here, there []*Row
		seen := make(map[deviceKey]bool)
		for _, row := range rows {
			key, ok := b.keys[0].key(row, level)
			k := deviceKey{deviceOf(row), key}
			sides := b.rows[at][k]
			if !ok || len(sides[1]) == 0 {
				continue level
			}
			if !seen[k] {
				seen[k] = true
				here, there = append(here, sides[0]...), append(there, sides[1]...)
			}
		}
		good := b.result.rateOf(there)
		return &Comparison{Match: level, Good: good, Excess: difference(r.rateOf(here).Bytes, good.Bytes)}
	}
	rate := r.rateOf(rows)
	return &Comparison{Good: Rate{Unit: rate.Unit}, Excess: rate.Bytes}
}

// holdAgainst judges by the good run: what grows there as fast is wanted.
func (r *Result) holdAgainst(good *snapshot.Run, grown []cluster) {
	if len(good.Snapshots) < 2 {
		r.Notes = append(r.Notes, "the run to hold this one against has fewer than two snapshots: it says nothing")
		return
	}
	b := r.newBaseline(good)
	if first, last := b.result.First.Mark.Step, b.result.Last.Mark.Step; (first == snapshot.NoStep || last <= first) != (r.First.Mark.Step == snapshot.NoStep || r.Last.Mark.Step <= r.First.Mark.Step) {
		r.Notes = append(r.Notes, "only one of the run and the one to hold it against knows its steps: their rates cannot be compared")
		return
	}
	for i := range grown {
		j := &grown[i].j
		if j.verdict != Leak && j.verdict != Inconclusive {
			continue
		}
		c := r.compare(b, grown[i].rows)
		grown[i].against = c
		more := fmt.Sprintf("%s a %s more than in the good run (%s to %s; %s)", signed(c.Excess.Value), j.rate.Unit, signed(c.Excess.Low), signed(c.Excess.High), c.Match.matched())
		switch {
		case c.Match == "":
			j.because("the good run has no such stack")
		case c.Excess.Low > 0:
			j.because("it grows by %s", more)
		case c.Excess.Value <= alikeRates*math.Abs(j.rate.Bytes.Value):
			j.call(Bounded, Strong, "the good run grows there as fast (%s)", c.Match.matched())
		default:
			j.call(Inconclusive, Weak, "it may grow no faster than in the good run: %s", more)
		}
	}
}

// alikeRates is by which part of a rate another may be less and still be as fast.
const alikeRates = 0.1

func signed(bytes float64) string {
	if bytes < 0 {
		return snapshot.FormatBytes(bytes)
	}
	return "+" + snapshot.FormatBytes(bytes)
}

// difference is a - b; its interval has half the width of both squared and added.
func difference(a, b trend.Slope) trend.Slope {
	d := a.Value - b.Value
	return trend.Slope{
		Value: d, Low: d - math.Hypot(a.Value-a.Low, b.High-b.Value), High: d + math.Hypot(a.High-a.Value, b.Value-b.Low),
		N: min(a.N, b.N),
	}
}
