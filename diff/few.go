package diff

// fewMarks counts, over all sites of a run of few marks, those that vary and those
// that are even.
type fewMarks struct{ varying, even, marks int }

func (f *fewMarks) add(h *history) {
	if h.varies() {
		f.varying++
		f.marks = len(h.bytes)
	}
	if h.even() {
		f.even++
	}
}

// enough says whether what is even may be called a leak: of all sites that vary,
// more are even than chance explains.
func (f *fewMarks) enough() bool {
	return f.marks < testable && f.even > 0 && float64(f.varying)*evenChance(f.marks) <= fewFalse*float64(f.even)
}
