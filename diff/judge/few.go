package judge

import "github.com/memdiag/memdiag/diff/series"

// FewMarks counts the sites that vary, and those that grow evenly, in a run of few marks.
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

// Enough reports whether even growth may be called a leak: more of the sites that vary are even than chance explains.
func (f *FewMarks) Enough() bool {
	return f.Marks < series.Testable && f.Even > 0 && float64(f.Varying)*series.EvenChance(f.Marks) <= series.Unlikely*float64(f.Even)
}
