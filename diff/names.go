package diff

import (
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
)

// A result is made of these; packages series and judge have their promises.
type (
	// Row is one call site in the first and the last snapshot.
	Row = series.Row
	// Tally counts blocks and what they take.
	Tally = series.Tally
	// Series are the counts and bytes of every site over a run.
	Series = series.Series
	// SiteSeries are those of one site.
	SiteSeries = series.SiteSeries
	// Axis is where the snapshots of a run lie.
	Axis = series.Axis
	// Unit is what an axis counts.
	Unit = series.Unit
	// Growth is so many bytes for one of a unit.
	Growth = series.Growth
	// Rate is growth for one of a unit, with its interval.
	Rate = series.Rate
	// Part is a part of the judge with a name.
	Part = series.Part
	// Without names the parts of the judge that are left out.
	Without = series.Without
	// Verdict is what memdiag calls a site that grew.
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
