package series

import (
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Rate is growth per unit of the series' axis, with 95 % intervals if there are enough points.
type Rate struct {
	Unit   Unit
	Blocks trend.Slope
	Bytes  trend.Slope
}

// PairRate is the growth between two snapshots, as if it were even. Within a step, it is the growth itself: per second, some
// milliseconds of a step would stand for all.
func PairRate(growth Tally, first, last *snapshot.Snapshot) Rate {
	axis := PairAxis(first, last)
	if last.Mark.Step != snapshot.NoStep && first.Mark.Step == last.Mark.Step {
		axis = Axis{Place, []float64{0, 1}}
	}
	length := axis.Length()
	exact := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 2} }
	return Rate{axis.Unit, exact(float64(growth.Blocks) / length), exact(float64(growth.Bytes) / length)}
}

// Add adds t to s. Both are of one device; s may be empty.
func (s *SiteSeries) Add(t *SiteSeries) {
	if s.Blocks == nil {
		s.Device, s.Blocks, s.Bytes = t.Device, make([]int64, len(t.Blocks)), make([]snapshot.Bytes, len(t.Bytes))
	}
	for i := range t.Blocks {
		s.Blocks[i] += t.Blocks[i]
		s.Bytes[i] += t.Bytes[i]
	}
}

// Rate is the slope of one of the series' sites, or of a sum of several; false if there are too few marks.
func (s *Series) Rate(site *SiteSeries) (Rate, bool) {
	if site.Blocks == nil {
		return Rate{}, false
	}
	h := HistoryOf(s, site)
	if h == nil {
		return Rate{}, false
	}
	return h.Rate(), true
}
