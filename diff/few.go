package diff

import "github.com/memdiag/memdiag/diff/series"

// fewMarks counts, over all sites of a run of few marks, those that vary and those
// that are even.
type fewMarks struct{ varying, even, marks int }

func (f *fewMarks) add(h *series.History) {
	if h.Varies() {
		f.varying++
		f.marks = len(h.Bytes)
	}
	if h.Even() {
		f.even++
	}
}

// enough says whether what is even may be called a leak: of all sites that vary,
// more are even than chance explains.
func (f *fewMarks) enough() bool {
	return f.marks < series.Testable && f.even > 0 && float64(f.varying)*series.EvenChance(f.marks) <= fewFalse*float64(f.even)
}
