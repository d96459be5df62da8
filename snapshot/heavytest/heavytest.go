// Package heavytest excludes tests that take minutes from a plain go test ./..., in which each package should take at most two minutes,
// far below Go's limit of ten. CI runs them all.
package heavytest

import (
	"os"
	"testing"
	"time"
)

// Variable is the environment variable that, set to 1, asks for all tests. .ci/run sets it.
const Variable = "MEMDIAG_HEAVY"

// Asked reports whether all tests are to run.
func Asked() bool { return os.Getenv(Variable) == "1" }

// Skip skips a test unless all are to run, and says what it is that takes long.
func Skip(t testing.TB, what string) {
	t.Helper()
	if !Asked() {
		t.Skipf("%s; %s=1 go test runs it, as CI does", what, Variable)
	}
}

// Of is how much of something to do: all, or some if not all tests are requested.
func Of[T any](t testing.TB, all, some T) T {
	t.Helper()
	if Asked() {
		return all
	}
	t.Logf("%v in place of %v; %s=1 go test does all, as CI does", some, all, Variable)
	return some
}

// Race reports whether this is under the race detector.
const Race = race

// Sequential skips a test without shared state under the race detector, which would make it ten times as slow.
func Sequential(t testing.TB, why string) {
	t.Helper()
	if race {
		t.Skipf("%s, so there is nothing to race", why)
	}
}

// NearlyLinear fails if work on four times as many items takes over eight times as long: quadratic work takes sixteen times as long. It
// tries three times, since other programs run, too.
func NearlyLinear(t testing.TB, n int, work func(n int)) {
	t.Helper()
	took := func(n int) float64 {
		begun := time.Now()
		work(n)
		return time.Since(begun).Seconds()
	}
	var ratio float64
	for range 3 {
		few := took(n / 4)
		if ratio = took(n) / few; ratio <= 8 {
			return
		}
	}
	t.Errorf("%d items take %.0f times as long as %d", n, ratio, n/4)
}
