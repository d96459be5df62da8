package diff

import "github.com/memdiag/memdiag/diff/series"

// A result is made of these; package series has their promises.
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
)

// The units of an axis.
const (
	Step   = series.Step
	Second = series.Second
	Place  = series.Place
)
