package diff

// RateOf is the rate of one row by itself, whatever finding it is part of: the slope
// of its series, or where that is too short to have one the growth from the first
// snapshot to the last. It costs as much as to judge the row.
func (r *Result) RateOf(row *Row) Rate {
	if h := historyOf(r.Series, r.Series.Site(row)); h != nil {
		return h.rate()
	}
	return pairRate(row.Growth(), r.First, r.Last)
}
