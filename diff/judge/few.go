package judge

import "github.com/memdiag/memdiag/diff/series"

// FewMarks counts, over all sites of a run of few marks, those that vary and those
// that are even.
type FewMarks struct{ Varying, Even, Marks int }

// Add counts a site.
func (f *FewMarks) Add(h *series.History) {
	if h.Varies() {
		f.Varying++
		f.Marks = len(h.Bytes)
	}
	if h.Even() {
		f.Even++
	}
}

// Enough says whether what is even may be called a leak: of all sites that vary,
// more are even than chance explains.
func (f *FewMarks) Enough() bool {
	return f.Marks < series.Testable && f.Even > 0 && float64(f.Varying)*series.EvenChance(f.Marks) <= series.Unlikely*float64(f.Even)
}
