package diff

import (
	"slices"
	"testing"

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
	s := Collect(&snapshot.Run{Series: c})
	x, inSteps := s.X()
	if !inSteps || !slices.Equal(x, []float64{0, 1, 2, 3, 4}) {
		t.Errorf("the axis is %v, in steps %v", x, inSteps)
	}
	if len(s.Sites) != 1 || !slices.Equal(s.Sites[0].Blocks, []int64{3, 3, 3, 3, 3}) {
		t.Errorf("sites %+v", s.Sites)
	}
	if len(c.Points) != 8 || c.Points[1].Mark.Phase != "eval" {
		t.Error("the run's own series was changed")
	}
}
