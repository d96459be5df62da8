package diff

import (
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
)

// Types of a result; packages series and judge document them.
type (
	// Row is one call site in the first and the last snapshot.
	Row = series.Row
	// Tally counts blocks and their bytes.
	Tally = series.Tally
	// Series are the counts and bytes of every site over a run.
	Series = series.Series
	// SiteSeries is the counts and bytes of one site.
	SiteSeries = series.SiteSeries
	// Axis gives the positions of a run's snapshots.
	Axis = series.Axis
	// Unit is the unit of an axis.
	Unit = series.Unit
	// Growth is bytes per unit.
	Growth = series.Growth
	// Rate is growth per unit, with its interval.
	Rate = series.Rate
	// Part is a named part of the judge.
	Part = series.Part
	// Without names the parts of the judge that are left out.
	Without = series.Without
	// Verdict is memdiag's judgement of a site that grew.
	Verdict = judge.Verdict
	// Evidence is what a verdict rests on.
	Evidence = judge.Evidence
	// Shape is how a leak grows.
	Shape = judge.Shape
)

// The units of an axis.
const (
	Step   = series.Step
	Second = series.Second
	Place  = series.Place
	Batch  = series.Batch
)

// The verdicts.
const (
	Leak         = judge.Leak
	Bounded      = judge.Bounded
	Clean        = judge.Clean
	Inconclusive = judge.Inconclusive
)

// Tiers of evidence.
const (
	Proof  = judge.Proof
	Strong = judge.Strong
	Weak   = judge.Weak
)

// The shapes.
const (
	Steady    = judge.Steady
	Quadratic = judge.Quadratic
	BytesOnly = judge.BytesOnly
	Doubling  = judge.Doubling
)
