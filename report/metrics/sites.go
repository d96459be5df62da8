package metrics

import (
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/report"
)

// sites adds the verdicts and rates of the largest findings, and counts the others.
type sites struct {
	o      *one
	look   *Look
	leaks  func(*diff.Finding) bool
	shown  int
	folded int
	rates  map[string]float64 // of all leaks, by device
}

func newSites(o *one, l *Look, leaks func(*diff.Finding) bool) *sites {
	return &sites{o: o, look: l, leaks: leaks, rates: make(map[string]float64)}
}

// add adds one finding; call it with the largest first.
func (s *sites) add(f *diff.Finding) {
	device, result := deviceName(f.Rows[0].Device), s.look.Result
	if f.Child != nil {
		result = f.Child.Result
	}
	rate, known := perSecond(f.Rate, result)
	if s.leaks(f) && known {
		s.rates[device] += rate
	}
	l := []string{"fingerprint", fingerprint(f), "where", s.look.Root.Text(report.Place(f)), "device", device}
	if f.Child != nil {
		l = append(l, "role", f.Child.Role)
	} else {
		l = append(l, "role", "")
	}
	before := len(s.o.metrics)
	if s.shown < mostSites {
		s.o.gauge("site_leaks", "1 if an allocation site leaks, 0 if it grew and does not, or not surely; the ten largest have one.", boolean(s.leaks(f)), l...)
	}
	if len(s.o.metrics) == before { // there is one with the same line and function
		s.folded++
		return
	}
	s.shown++
	s.o.bytes("site_live_bytes", "Live memory of an allocation site in the last snapshot.", f.After().Bytes, l...)
	if f.Rate.Unit == series.Step {
		s.o.gauge("site_growth_bytes_per_step", "Growth of an allocation site for each training step.", f.Rate.Bytes.Value, l...)
	}
	if known {
		s.o.gauge("site_growth_bytes_per_second", "Growth of an allocation site for each second.", rate, l...)
	}
}

// end adds the totals.
func (s *sites) end() {
	s.o.gauge("sites_folded", "Sites that grew and have no metrics of their own.", float64(s.folded))
	for _, device := range slices.Sorted(maps.Keys(s.rates)) {
		s.o.gauge("leaked_bytes_per_second", "Growth of all leaks together.", s.rates[device], "device", device)
	}
}

// perSecond is a rate per second, at the average pace of the run; false if that is unknown.
func perSecond(r diff.Rate, result *diff.Result) (float64, bool) {
	switch r.Unit {
	case series.Second:
		return r.Bytes.Value, true
	case series.Step, series.Batch:
		first, last := result.First.Mark, result.Last.Mark
		if seconds := last.Time.Sub(first.Time).Seconds(); seconds > 0 && !first.Time.IsZero() && last.Step > first.Step {
			return r.Bytes.Value * float64(last.Step-first.Step) / seconds, true
		}
	}
	return 0, false
}
