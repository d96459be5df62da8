package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// grouped writes 26214400 as 26,214,400.
func grouped(n int64) string { return snapshot.Grouped(n) }

// duration is "29.7 s": three digits in the largest unit that it reaches.
func duration(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		// 59.96 s would print as 60.0 s, so it is printed as a minute.
		if v := float64(d) / float64(u.size); math.Abs(v) >= 0.9995 {
			return threeDigits(v) + " " + u.name
		}
	}
	if d == 0 {
		return "0 s"
	}
	return threeDigits(float64(d)/float64(time.Microsecond)) + " µs"
}

func signedCount(n int64) string {
	if n > 0 {
		return "+" + grouped(n)
	}
	return grouped(n)
}

// signed is a change of bytes, "+1.20 MiB".
func signed(b snapshot.Bytes) string {
	if b > 0 {
		return "+" + b.String()
	}
	return b.String()
}

// exact is "26,214,400 bytes", or "" below 1 KiB, where the rounded figure is exact.
func exact(b snapshot.Bytes) string {
	if b > -snapshot.KiB && b < snapshot.KiB {
		return ""
	}
	return grouped(int64(b)) + " bytes"
}

// count is "1 block", "50 blocks", "-1 block".
func count(n int64, noun string) string {
	if n != 1 && n != -1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// A rate begins with "~" if its interval includes zero: it may be no growth. It is "" if there is no rate.

// bytesRate is the rate in bytes, or in blocks if their sizes are unknown.
func bytesRate(r diff.Rate) string {
	switch {
	case r.Unit == "":
		return ""
	case unsized(r):
		return blocksRate(r, "block")
	}
	r = readable(r)
	if v := r.Bytes.Value; v > 0 && v < 0.005 {
		return fmt.Sprintf("%s+1 B every %s %s", doubt(r.Bytes), threeDigits(1/v), r.Unit.Plural())
	}
	return doubt(r.Bytes) + plusSign(r.Bytes.Value) + snapshot.FormatBytes(r.Bytes.Value) + "/" + string(r.Unit)
}

// unsized reports whether the blocks of a rate increase while their size is unknown (0).
func unsized(r diff.Rate) bool { return r.Blocks.Value > 0 && r.Bytes == (trend.Slope{N: r.Bytes.N}) }

// heldBlocks and grownBlocks are numbers of blocks in tables; "?" if the profiler gave bytes only.

func heldBlocks(n int64, uncounted bool) string {
	if uncounted {
		return "?"
	}
	return grouped(n)
}

func grownBlocks(n int64, uncounted bool) string {
	if uncounted {
		return "?"
	}
	return signedCount(n)
}

// inBlocks is " in 5 blocks" after a size; "" if blocks are not counted.
func inBlocks(n int64, uncounted bool) string {
	if uncounted {
		return ""
	}
	return " in " + glue(count(n, "block"))
}

// ratesText is a finding's rates; the rate of blocks only if they are counted.
func ratesText(f *diff.Finding) string {
	text := glue(bytesRate(f.Rate))
	switch {
	case unsteady(f):
		return "no steady rate"
	case unsized(f.Rate):
		return glue(blocksRate(f.Rate, noun(f)))
	case f.Uncounted:
		return text
	}
	return glue(blocksRate(f.Rate, noun(f))) + ", " + text
}

// unsteady reports whether a possible leak rose too rarely to have a rate.
func unsteady(f *diff.Finding) bool {
	const none = 1e-6 // rounding leaves so much of a rate of zero
	return f.Verdict == diff.Inconclusive && math.Abs(f.Rate.Blocks.Value) < none && math.Abs(f.Rate.Bytes.Value) < none
}

// blocksRateOf is a finding's rate of blocks; "" if they are not counted.
func blocksRateOf(f *diff.Finding) string {
	if f.Uncounted || f.Rate.Unit == "" || unsized(f.Rate) {
		return ""
	}
	return blocksRate(f.Rate, noun(f))
}

func blocksRate(r diff.Rate, noun string) string {
	r = readable(r)
	v := r.Blocks.Value
	if v == 0 && doubt(r.Blocks) == "" {
		return "0 " + noun + "s/" + string(r.Unit)
	}
	if v > 0 && v < 0.1 {
		return fmt.Sprintf("%s+1 %s every %s %s", doubt(r.Blocks), noun, threeDigits(1/v), r.Unit.Plural())
	}
	if math.Abs(v) > 1.004 {
		noun += "s"
	}
	return doubt(r.Blocks) + plusSign(v) + threeDigits(v) + " " + noun + "/" + string(r.Unit)
}

func doubt(s trend.Slope) string {
	if s.Low <= 0 && s.High >= 0 && s.Low != s.High {
		return "~"
	}
	return ""
}

func plusSign(v float64) string {
	if v > 0 {
		return "+"
	}
	return ""
}

func threeDigits(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 99.95:
		return grouped(int64(math.Round(v)))
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// finely is threeDigits, but with three significant digits below a tenth, too.
func finely(v float64) string {
	if v == 0 || math.Abs(v) >= 0.0995 {
		return threeDigits(v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// interval is text like "+500 to +520 KiB", or "" if the interval reads as a point.
func interval(s trend.Slope, format func(float64) string) string {
	low, high := format(s.Low), format(s.High)
	if s.Low == s.High || low == high {
		return ""
	}
	return fmt.Sprintf("%s%s to %s%s", plusSign(s.Low), low, plusSign(s.High), high)
}
