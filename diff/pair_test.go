package diff

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

func TestPairCountsBornDiedAndKept(t *testing.T) {
	a := build(0, block{"weights", 1024, -1}, block{"cache", 512, 0}, block{"cache", 512, 0})
	b := build(50, block{"weights", 1024, -1}, block{"cache", 512, 0}, block{"cache", 512, 40}, block{"features", 4096, 10})
	got := map[string]Row{}
	for _, r := range series.Pair(a, b) {
		got[r.Frames[1].Function] = r
	}
	for _, c := range []struct {
		stack      string
		born, died int64
		growth     Tally
	}{
		{"weights", 0, 0, Tally{}},
		{"cache", 1, 1, Tally{}},
		{"features", 1, 0, Tally{Blocks: 1, Bytes: 4096, Requested: 4095}},
	} {
		r := got[c.stack]
		if r.Born.Blocks != c.born || r.Died.Blocks != c.died || r.Growth() != c.growth {
			t.Errorf("%s: born %d, died %d, growth %v; want %d, %d, %v", c.stack, r.Born.Blocks, r.Died.Blocks, r.Growth(), c.born, c.died, c.growth)
		}
	}
}

func TestPairOfDifferentProcessesCountsNetChange(t *testing.T) {
	a := build(0, grown("cache", 5, 512, 0, 1)...)
	b := build(50, grown("cache", 7, 512, 100, 1)...)
	a.Segments[0].Address = 0xdead0000
	row := series.Pair(a, b)[0]
	if row.Born.Blocks != 2 || row.Died.Blocks != 0 {
		t.Errorf("born %d, died %d; want the net 2, 0", row.Born.Blocks, row.Died.Blocks)
	}
}

func TestPairOfTotalsCountsNetChangeAndSaysNoWordOfProcesses(t *testing.T) {
	total := func(count int64, bytes snapshot.Bytes) *snapshot.Snapshot {
		s := build(snapshot.NoStep, block{"cache", bytes, snapshot.NoStep})
		s.Segments[0].Address, s.Blocks.Address[0], s.Blocks.Count = 0, 0, []int64{count}
		return s
	}
	run := &snapshot.Run{Snapshots: []*snapshot.Snapshot{total(5, 5000), total(12, 5000)}}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Rows[0]; row.Growth().Blocks != 7 || row.Born.Blocks != 7 || row.Died.Blocks != 0 {
		t.Errorf("growth %v, born %d, died %d; want 7, 7, 0", row.Growth(), row.Born.Blocks, row.Died.Blocks)
	}
	if len(r.Notes) > 0 {
		t.Errorf("notes: %q", r.Notes)
	}
}

// drawn is a snapshot of random blocks over few stacks, sizes and births, so
// that sites overlap, share addresses and have none.
func drawn(t *rapid.T, name string) *snapshot.Snapshot {
	stacks := []string{"", "a", "b", "c"}
	blocks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) block {
		return block{rapid.SampledFrom(stacks).Draw(t, "stack"), snapshot.Bytes(512 * rapid.IntRange(1, 3).Draw(t, "size")), int64(rapid.IntRange(-1, 3).Draw(t, "birth"))}
	}), 0, 12).Draw(t, name)
	return build(10, blocks...)
}

func TestPairBackwardsIsPairWithSignsExchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(t, "a"), drawn(t, "b")
		forth, back := series.Pair(a, b), series.Pair(b, a)
		if len(forth) != len(back) {
			t.Fatalf("%d rows forth, %d back", len(forth), len(back))
		}
		for _, f := range forth {
			i := slices.IndexFunc(back, func(r Row) bool { return r.Key == f.Key })
			if i < 0 {
				t.Fatalf("site %v missing backwards", f.Key)
			}
			g := back[i]
			if f.Before != g.After || f.After != g.Before || f.Born != g.Died || f.Died != g.Born {
				t.Fatalf("forth %+v, back %+v", f, g)
			}
		}
	})
}

func TestRowsSumToTheTotalGrowth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(t, "a"), drawn(t, "b")
		var sum Tally
		for _, r := range series.Pair(a, b) {
			if r.Growth() != r.Born.Minus(r.Died) {
				t.Fatalf("growth %v is not born %v - died %v", r.Growth(), r.Born, r.Died)
			}
			sum.Blocks += r.Growth().Blocks
			sum.Bytes += r.Growth().Bytes
		}
		if want := b.Devices[0].Meters.Allocated - a.Devices[0].Meters.Allocated; sum.Bytes != want || sum.Blocks != int64(b.Blocks.Len()-a.Blocks.Len()) {
			t.Fatalf("rows sum to %v; the meters say %v", sum, want)
		}
	})
}

// TestFewSnapshotsPromiseNoMoreThanMoreOfThem: without births a third snapshot
// need not decide.
func TestFewSnapshotsPromiseNoMoreThanMoreOfThem(t *testing.T) {
	var run []*snapshot.Snapshot
	for i, want := range []Verdict{"", Inconclusive, Inconclusive, Inconclusive, Leak} {
		run = append(run, build(int64(10*i), grown("keep", 10*i+1, 512, snapshot.NoStep, 0)...))
		if i == 0 {
			continue
		}
		r, err := Analyze(runOf(run...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Findings[0]
		if f.Verdict != want || strings.Contains(strings.Join(f.Reasons, ";"), "third snapshot decides") {
			t.Errorf("%d snapshots: %s, %q; want %s", i+1, f.Verdict, f.Reasons, want)
		}
	}
}

func TestARunThatWasSeenInPartSaysSo(t *testing.T) {
	for _, c := range []struct {
		steps int64
		says  string
	}{{0, ""}, {140, ""}, {369, "no snapshot was taken after step 100 of 369"}} {
		run := runOf(build(0, block{"x", 64, 0}), build(100, block{"x", 64, 0}))
		run.Info.Steps = c.steps
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(append(r.Notes, r.NotSeen...), "; "); notes != c.says {
			t.Errorf("of %d steps: notes %q, want %q", c.steps, notes, c.says)
		}
	}
}

func TestARecorderThatChoosesItsStepsMissesNone(t *testing.T) {
	run := runOf(build(0), build(10), build(20), build(70), build(80))
	for _, c := range []struct {
		every int64
		notes int
	}{{0, 0}, {10, 1}} {
		run.Info.Command, run.Info.Every = []string{"python", "train.py"}, c.every
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Notes) != c.notes {
			t.Errorf("a snapshot each %d steps: notes %q", c.every, r.Notes)
		}
	}
}
