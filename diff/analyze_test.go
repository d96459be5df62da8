package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// verdicts are the result's findings by their stack's name.
func verdicts(t *testing.T, rule Rule, snapshots ...*snapshot.Snapshot) map[string]Finding {
	t.Helper()
	r, err := Analyze(runOf(snapshots...), rule)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Finding{}
	for _, f := range r.Findings {
		name := f.Rows[0].Label
		if f.Headline >= 0 {
			name = f.Rows[0].Frames[f.Headline].Function
		}
		out[name] = f
	}
	return out
}

func TestTwoSnapshotsAreJudgedByBirths(t *testing.T) {
	weights := block{"weights", 4096, -1}
	for _, c := range []struct {
		name     string
		after    []block
		verdict  Verdict
		evidence Evidence
	}{
		{"a block born in each step leaks", grown("x", 50, 512, 0, 1), Leak, Strong},
		{"a block born in each tenth step leaks", grown("x", 5, 512, 5, 10), Leak, Strong},
		{"many blocks of the first step are made once", grown("x", 50, 512, 0, 0), Bounded, Weak},
		{"blocks of the last ten steps are a window", grown("x", 10, 512, 40, 1), Bounded, Weak},
		{"births with long gaps decide nothing", append(grown("x", 5, 512, 0, 1), grown("x", 5, 512, 35, 1)...), Inconclusive, Weak},
		{"few births far apart decide nothing", grown("x", 2, 512, 10, 25), Inconclusive, Weak},
		{"blocks without births decide nothing", grown("x", 50, 512, snapshot.NoStep, 0), Inconclusive, Weak},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := verdicts(t, ByTrend, build(0, weights), build(50, append(c.after, weights)...))["x"]
			if f.Verdict != c.verdict || f.Evidence != c.evidence {
				t.Errorf("got %s, %s (%v); want %s, %s", f.Verdict, f.Evidence, f.Reasons, c.verdict, c.evidence)
			}
		})
	}
}

func TestThreeSnapshotsAreJudgedByIntervals(t *testing.T) {
	at := func(n0, n50, n100 int) []*snapshot.Snapshot {
		return []*snapshot.Snapshot{
			build(0, grown("x", n0, 512, 0, 0)...), build(50, grown("x", n50, 512, 0, 0)...), build(100, grown("x", n100, 512, 0, 0)...),
		}
	}
	for _, c := range []struct {
		name          string
		n0, n50, n100 int
		verdict       Verdict
	}{
		{"growth before and after warm-up decides nothing yet", 1, 50, 100, Inconclusive},
		{"growth only in the warm-up is bounded", 1, 50, 50, Bounded},
		{"growth that falls again is bounded", 1, 50, 20, Bounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := verdicts(t, ByTrend, at(c.n0, c.n50, c.n100)...)["x"]; f.Verdict != c.verdict {
				t.Errorf("got %s (%v); want %s", f.Verdict, f.Reasons, c.verdict)
			}
		})
	}
	if got := verdicts(t, ByTrend, at(50, 50, 50)...); len(got) != 0 {
		t.Errorf("a flat site is found: %v", got)
	}
}

func TestBlocksThatComeAndGoAreNoLeakThoughTheirCountRises(t *testing.T) {
	var run []*snapshot.Snapshot
	for i := range int64(10) {
		// As a ramp that starts anew in each epoch looks, seen once an epoch.
		run = append(run, build(10*i, grown("x", int(i+1), 512, 10*i-i-1, 1)...))
	}
	if f := verdicts(t, ByTrend, run...)["x"]; f.Verdict != Bounded {
		t.Errorf("got %s (%v); want bounded", f.Verdict, f.Reasons)
	}
}

// Hooks that each keep a feature until the next step are one more in each ten steps.
func TestMoreBlocksInEachStepAreNotBounded(t *testing.T) {
	var run []*snapshot.Snapshot
	for i := range int64(10) {
		run = append(run, build(10*i, grown("x", int(i+1), 512, 10*i-1, 0)...))
	}
	if f := verdicts(t, ByTrend, run...)["x"]; f.Verdict != Inconclusive {
		t.Errorf("got %s (%v); want inconclusive", f.Verdict, f.Reasons)
	}
}

func TestHandbookRuleFindsNewStacksOnly(t *testing.T) {
	a := build(50, append(grown("features", 50, 4096, 0, 1), block{"weights", 512, -1})...)
	b := build(100, append(grown("features", 100, 4096, 0, 1), block{"weights", 512, -1}, block{"lazy", 512, 60})...)
	got := verdicts(t, ByHandbook, a, b)
	if got["lazy"].Verdict != Leak || got["features"].Verdict != "" {
		t.Errorf("got %v; the handbook calls the new stack a leak, and misses the one that grows", got)
	}
}

func TestForecastReachesTheLimitAtTheRate(t *testing.T) {
	a, b := build(0, grown("x", 1, 1024, -1, 0)...), build(100, append(grown("x", 1, 1024, -1, 0), grown("x", 100, 1024, 0, 1)...)...)
	b.Devices[0].Limit = 201 * 1024
	f := verdicts(t, ByTrend, a, b)["x"]
	if f.RunsOut == nil || f.RunsOut.Step != 200 {
		t.Fatalf("runs out %+v; want step 200", f.RunsOut)
	}
}

func TestOneSnapshotIsNoComparison(t *testing.T) {
	if _, err := Analyze(runOf(build(0)), ByTrend); err == nil {
		t.Error("no error for a single snapshot")
	}
}
