package diff

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// anySnapshot draws a snapshot of a few blocks; addresses, births and stacks come
// from so few values that two of them share some.
func anySnapshot(t *rapid.T, label string) *snapshot.Snapshot {
	n := rapid.IntRange(0, 12).Draw(t, label)
	s := build(rapid.Int64Range(0, 100).Draw(t, label+" step"))
	for i := range n {
		b := &s.Blocks
		names := []string{"a:1 main:9", "b:2 main:9", "a:1 c:3 main:9", "[lib:1]"}
		id := snapshot.NoStack
		if k := rapid.IntRange(0, len(names)).Draw(t, "stack"); k < len(names) {
			id = s.Stacks.InternFrames(parseStack(names[k]))
		}
		size := snapshot.Bytes(512 * rapid.IntRange(0, 4).Draw(t, "size"))
		b.Segment = append(b.Segment, 0)
		b.Address = append(b.Address, uint64(i)*4096+8*uint64(rapid.IntRange(0, 2).Draw(t, "address")))
		b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
		b.State = append(b.State, snapshot.State(rapid.IntRange(0, 2).Draw(t, "state")))
		b.Stack, b.BirthStep = append(b.Stack, id), append(b.BirthStep, rapid.Int64Range(-1, 9).Draw(t, "birth"))
	}
	s.Segments[0].NumBlocks = n
	if rapid.Bool().Draw(t, label+" elsewhere") {
		s.Segments[0].Address = 0x99000
	}
	return s
}

// TestADiffReversedIsItsNegative: for every row and every figure: what is born
// one way has died the other way.
func TestADiffReversedIsItsNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySnapshot(t, "a"), anySnapshot(t, "b")
		forth, back := series.Pair(a, b), series.Pair(b, a)
		if len(forth) != len(back) {
			t.Fatalf("%d rows forth, %d back", len(forth), len(back))
		}
		for _, r := range forth {
			i := slices.IndexFunc(back, func(x Row) bool { return x.Key == r.Key })
			if i < 0 {
				t.Fatalf("no row back for %+v", r)
			}
			x := back[i]
			if x.Growth() != (Tally{}).Minus(r.Growth()) || x.Born != r.Died || x.Died != r.Born || x.Before != r.After || x.After != r.Before {
				t.Fatalf("forth %+v, back %+v", r, x)
			}
			if r.After.Minus(r.Before) != r.Born.Minus(r.Died) {
				t.Fatalf("%+v: born less died is not its growth", r)
			}
		}
	})
}

// TestFindingsAndRestSumToTheGrowth in any run: no block is counted twice or
// left out, and every row is in one finding at most.
func TestFindingsAndRestSumToTheGrowth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := &snapshot.Run{}
		for range rapid.IntRange(2, 9).Draw(t, "snapshots") {
			run.Snapshots = append(run.Snapshots, anySnapshot(t, "s"))
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		live := func(s *snapshot.Snapshot) (sum Tally) {
			for _, site := range s.Sites() {
				sum = sum.Plus(Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested})
			}
			return sum
		}
		if got, want := r.Growth(), live(r.Last).Minus(live(r.First)); got != want {
			t.Fatalf("growth %+v, want %+v", got, want)
		}
		seen := make(map[*Row]bool)
		var found, rest Tally
		for i := range r.Findings {
			f := &r.Findings[i]
			found = found.Plus(f.Growth())
			for _, row := range f.Rows {
				if seen[row] {
					t.Fatalf("a row is in two findings")
				}
				seen[row] = true
			}
			if f.Headline >= len(f.Rows[0].Frames) || f.Headline >= 0 && frame.Library(f.Rows[0].Frames[f.Headline]) {
				t.Fatalf("headline %d of %d frames", f.Headline, len(f.Rows[0].Frames))
			}
		}
		for i := range r.Rows {
			if !seen[&r.Rows[i]] {
				rest = rest.Plus(r.Rows[i].Growth())
			}
		}
		if found.Plus(rest) != r.Growth() {
			t.Fatalf("findings %+v and the rest %+v do not sum to %+v", found, rest, r.Growth())
		}
		again, _ := Analyze(run, ByTrend)
		for i := range r.Findings {
			if !slices.Equal(r.Findings[i].Reasons, again.Findings[i].Reasons) {
				t.Fatalf("the same run is judged differently")
			}
		}
	})
}
