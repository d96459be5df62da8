package diff

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// TestMarksOfOtherPhasesAreNotCompared counts a run whose evaluation, behind every
// second step, holds 100 blocks: they are no growth of the training, and steps
// stay the axis.
func TestMarksOfOtherPhasesAreNotCompared(t *testing.T) {
	c := &snapshot.Series{Devices: []snapshot.Device{{Kind: snapshot.CPU}}, Stacks: snapshot.NewStacks()}
	c.Sites = []snapshot.SeriesSite{{Stack: c.Stacks.InternFrames([]snapshot.Frame{{Function: "outputs", File: "a.py"}})}}
	point := func(step int64, phase string, count int64) {
		c.Points = append(c.Points, snapshot.Point{
			Mark: snapshot.Mark{Step: step, Phase: phase}, Meters: make([]snapshot.Meters, 1),
			Sites: []snapshot.SiteCount{{Count: count, Bytes: snapshot.Bytes(count) * 512}},
		})
	}
	for step := range int64(5) {
		point(step, "train", 3)
		if step%2 == 0 {
			point(step, "eval", 100)
		}
	}
	s := series.Collect(&snapshot.Run{Series: c})
	if a := s.Axis; a.Unit != Step || !slices.Equal(a.X, []float64{0, 1, 2, 3, 4}) {
		t.Errorf("the axis is %v", a)
	}
	if len(s.Sites) != 1 || !slices.Equal(s.Sites[0].Blocks, []int64{3, 3, 3, 3, 3}) {
		t.Errorf("sites %+v", s.Sites)
	}
	if len(c.Points) != 8 || c.Points[1].Mark.Phase != "eval" {
		t.Error("the run's own series was changed")
	}
}

// TestCountingByStackAgreesWithSites holds the fast way of counting against the slow
// one, on runs whose snapshots share a table of stacks and on such that do not.
func TestCountingByStackAgreesWithSites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := &snapshot.Run{}
		for range rapid.IntRange(1, 6).Draw(t, "snapshots") {
			s := anySnapshot(t, "s")
			for i, id := range s.Blocks.Stack {
				if id == snapshot.NoStack && rapid.Bool().Draw(t, "dropped") {
					s.Blocks.State[i] = snapshot.Free
				}
			}
			run.Snapshots = append(run.Snapshots, s)
			if rapid.Bool().Draw(t, "twice") {
				again := *s
				run.Snapshots = append(run.Snapshots, &again)
			}
		}
		all := series.Collect(run)
		for at, s := range run.Snapshots {
			sites := s.Sites()
			held := 0
			for i := range all.Sites {
				if all.Sites[i].Blocks[at] > 0 {
					held++
				}
			}
			if held != len(sites) {
				t.Fatalf("%d sites at mark %d, want %d", held, at, len(sites))
			}
			for _, site := range sites {
				got := all.SiteOf(series.KeyOf(s, site.SiteKey))
				if got.Blocks[at] != site.Count || got.Bytes[at] != site.Bytes {
					t.Fatalf("%d blocks of %s, want %d of %s", got.Blocks[at], got.Bytes[at], site.Count, site.Bytes)
				}
			}
		}
	})
}
