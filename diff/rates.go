package diff

import "github.com/memdiag/memdiag/diff/series"

// RateOf is the rate of one row alone, whatever finding it is part of: the slope of its series or, if that is too
// short, the growth from the first snapshot to the last. It costs as much as judging the row.
func (r *Result) RateOf(row *Row) Rate {
	if h := series.HistoryOf(r.Series, r.Series.Site(row)); h != nil {
		return h.Rate()
	}
	return series.PairRate(row.Growth(), r.First, r.Last)
}
