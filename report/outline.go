package report

import (
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
)

// GrowthText is "+512 KiB/step at feature_pyramid.go:80".
func GrowthText(f *diff.Finding) string { return unglued(growthText(f)) }

// HolderText is "list `curve` (200 items)"; "" if no holder is known.
func HolderText(f *diff.Finding) string { return unglued(held(f)) }

// ReserveText is growth of reserved memory or of a process, in one paragraph.
func ReserveText(e *diff.Reserve) string { return reserveText(e) }

// MoreText says what would decide an inconclusive finding; "" if that is unknown.
func MoreText(r *diff.Result, f *diff.Finding) string {
	return unglued(moreText(r.Series.Axis.Unit, f.More))
}

// CheckText is "512 KiB (500 KiB to 520 KiB) a step, and with the change 0 B".
func CheckText(c *baseline.Check) string {
	return rateInterval(c.Before) + " a " + string(c.Unit) + ", and with the change " + afterText(c)
}
