package diff

import (
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// counted is a run of 60 training steps in epochs of ten, with an evaluation of two
// steps behind every fifth and a checkpoint behind every seventh step. held tells
// the blocks at each point.
func counted(held func(point int, m snapshot.Mark, behind string) int64) (*Result, *Row) {
	c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: snapshot.CPU}}}
	stack := c.Stacks.InternFrames([]snapshot.Frame{{Function: "x", File: "x.go"}})
	c.Sites = []snapshot.SeriesSite{{Stack: stack}}
	behind := ""
	add := func(m snapshot.Mark) {
		n := held(len(c.Points), m, behind)
		p := snapshot.Point{Mark: m, Meters: make([]snapshot.Meters, 1)}
		if n > 0 {
			p.Sites = []snapshot.SiteCount{{Count: n, Bytes: snapshot.Bytes(n) * 512}}
		}
		c.Points = append(c.Points, p)
		behind = m.Phase
	}
	for step := range int64(61) {
		m := snapshot.Mark{Step: step, Epoch: max(0, step-1) / 10, Phase: "train"}
		add(m)
		if step > 0 && step%5 == 0 {
			m.Phase = "eval"
			add(m)
			add(m)
		}
		if step > 0 && step%7 == 0 {
			m.Phase = "checkpoint"
			add(m)
		}
	}
	row := &Row{Key: series.SiteKey{Device: series.DeviceID{Kind: snapshot.CPU}, Hash: c.Stacks.Hash(stack)}}
	if last := c.Points[len(c.Points)-1].Sites; len(last) > 0 {
		row.After = Tally{Blocks: last[0].Count}
	}
	return &Result{run: &snapshot.Run{Series: c}}, row
}

func TestDriverTellsWhatGrowthFollows(t *testing.T) {
	coin := []int64{3, 4, 9, 10, 22, 23, 24, 31, 47, 48, 55}
	total := int64(0)
	adding := func(when func(m snapshot.Mark, behind string) bool) func(int, snapshot.Mark, string) int64 {
		total = 0
		return func(_ int, m snapshot.Mark, behind string) int64 {
			if when(m, behind) {
				total++
			}
			return total
		}
	}
	for _, c := range []struct {
		name  string
		when  func(m snapshot.Mark, behind string) bool
		want  cause.Driver
		every int64
	}{
		{"a block each step", func(m snapshot.Mark, _ string) bool { return m.Phase == "train" && m.Step > 0 }, cause.Steps, 1},
		{"a block each third step", func(m snapshot.Mark, _ string) bool { return m.Phase == "train" && m.Step%3 == 2 }, cause.Steps, 3},
		{"a block at each epoch's last step", func(m snapshot.Mark, _ string) bool { return m.Phase == "train" && m.Step > 0 && m.Step%10 == 0 }, cause.Epochs, 10},
		{"a block behind each epoch, seen in the next", func(m snapshot.Mark, _ string) bool { return m.Phase == "train" && m.Step > 1 && m.Step%10 == 1 }, cause.Epochs, 10},
		{"blocks in evaluations", func(m snapshot.Mark, _ string) bool { return m.Phase == "eval" }, cause.Evaluations, 5},
		{"a block behind each evaluation, seen in the next step or checkpoint", func(m snapshot.Mark, behind string) bool { return behind == "eval" && m.Phase != "eval" }, cause.Evaluations, 5},
		{"a block at each checkpoint", func(m snapshot.Mark, _ string) bool { return m.Phase == "checkpoint" }, cause.Checkpoints, 7},
		{"blocks at steps without a rule", func(m snapshot.Mark, _ string) bool {
			for _, s := range coin {
				if m.Phase == "train" && m.Step == s {
					return true
				}
			}
			return false
		}, cause.Irregular, 5},
		{"two events tell nothing", func(m snapshot.Mark, _ string) bool { return m.Phase == "train" && m.Step%29 == 28 }, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, row := counted(adding(c.when))
			if got := r.driver(row); got.driver != c.want || got.every != c.every {
				t.Errorf("got %+v, want %q every %d", got, c.want, c.every)
			}
		})
	}
}

// TestDriverSeesWhatStays: blocks that come and go in every step are no events.
func TestDriverSeesWhatStays(t *testing.T) {
	r, row := counted(func(point int, m snapshot.Mark, _ string) int64 {
		return m.Step/10 + int64(point%3)*5
	})
	events, all := r.events(row)
	if len(all) < 60 || len(events) > 9 {
		t.Errorf("%d events of %d points; want those of what stays, six and what the end leaves", len(events), len(all))
	}
}

func TestDriverFallsBackToBirths(t *testing.T) {
	for _, c := range []struct {
		steps []int64
		want  cause.Driver
	}{
		{[]int64{5, 10, 15, 20, 25, 30}, cause.Steps},
		{[]int64{1, 2, 9, 30, 31, 33, 60, 61}, cause.Irregular},
		{nil, ""},
	} {
		t.Run(fmt.Sprint(c.steps), func(t *testing.T) {
			row := &Row{Births: series.Births{Steps: c.steps}}
			if got := (&Result{run: &snapshot.Run{}}).driver(row); got.driver != c.want {
				t.Errorf("got %q, want %q", got.driver, c.want)
			}
		})
	}
}

// TestAnEvaluationOfSeveralStepsIsOne: two blocks in each evaluation are two, in however
// many of its steps they come.
func TestAnEvaluationOfSeveralStepsIsOne(t *testing.T) {
	total := int64(0)
	r, row := counted(func(_ int, m snapshot.Mark, _ string) int64 {
		if m.Phase == "eval" {
			total++
		}
		return total
	})
	if got := r.driver(row); got != (follows{driver: cause.Evaluations, every: 5, times: 12}) {
		t.Errorf("got %+v, want twelve evaluations, five steps apart", got)
	}
}

// TestAnEvaluationAtEachEpochsEndIsTold: what grows inside of it does not follow the epoch.
func TestAnEvaluationAtEachEpochsEndIsTold(t *testing.T) {
	c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: snapshot.CPU}}}
	stack := c.Stacks.InternFrames([]snapshot.Frame{{Function: "x", File: "x.go"}})
	c.Sites = []snapshot.SeriesSite{{Stack: stack}}
	held := int64(0)
	for step := range int64(61) {
		phases := []string{"train"}
		if step > 0 && step%10 == 0 {
			phases = append(phases, "eval", "eval", "eval")
		}
		for i, phase := range phases {
			if i == 1 {
				held++
			}
			c.Points = append(c.Points, snapshot.Point{
				Mark: snapshot.Mark{Step: step, Epoch: max(0, step-1) / 10, Phase: phase}, Meters: make([]snapshot.Meters, 1),
				Sites: []snapshot.SiteCount{{Count: held, Bytes: 512 * snapshot.Bytes(held)}},
			})
		}
	}
	row := &Row{Key: series.SiteKey{Device: series.DeviceID{Kind: snapshot.CPU}, Hash: c.Stacks.Hash(stack)}, After: Tally{Blocks: held}}
	if got := (&Result{run: &snapshot.Run{Series: c}}).driver(row); got != (follows{driver: cause.Evaluations, every: 10, times: 6}) {
		t.Errorf("got %+v, want six evaluations, ten steps apart", got)
	}
}

func TestAPaceThatStopsOrSettles(t *testing.T) {
	odd := times(60, func(i int64) int64 { return i/10*20 + i%10 })
	filled := append(times(8, func(i int64) int64 { return i }), times(12, func(i int64) int64 { return 15 + 8*i })...)
	for _, c := range []struct {
		name  string
		steps []int64
		want  follows
	}{
		{"each step of every other epoch", odd, follows{driver: cause.Steps, every: 1, times: 60, pauses: true}},
		{"each eighth step, behind a start of eight", filled, follows{driver: cause.Steps, every: 8, times: 20}},
		{"a step at which nothing comes, now and then", append(times(40, func(i int64) int64 { return i }), 42, 43, 44, 45), follows{driver: cause.Steps, every: 1, times: 44}},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := &Row{Births: series.Births{Steps: c.steps}}
			if got := (&Result{run: &snapshot.Run{}}).driver(row); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestARunThatEndsWithAnEpochHasThatOnesEnd(t *testing.T) {
	points := func(steps int64) []snapshot.Point {
		return append([]snapshot.Point{{}}, func() (all []snapshot.Point) {
			for step := int64(1); step <= steps; step++ {
				all = append(all, snapshot.Point{Mark: snapshot.Mark{Step: step, Epoch: (step - 1) / 10}})
			}
			return all
		}()...)
	}
	for steps, want := range map[int64]int{40: 4, 35: 3} {
		all := places(points(steps))
		ends := make(map[int]bool)
		for _, e := range all {
			if e.epoch {
				ends[e.epochs] = true
			}
		}
		if len(ends) != want {
			t.Errorf("%d steps of epochs of ten: %d ends, want %d", steps, len(ends), want)
		}
	}
}

func TestARecordingOfSomeStepsTellsEachStepOrNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		steps   []int64
		weights []int64
		want    follows
	}{
		{"those that were recorded stand for all", []int64{3, 4, 9, 10, 18, 21, 30}, []int64{4, 4, 4, 4, 4, 4, 4}, follows{driver: cause.Steps, every: 1, times: 28}},
		{"they stand for some", []int64{3, 40, 90}, []int64{4, 4, 4}, follows{}},
		{"every step was recorded", []int64{3, 4, 5, 6, 7}, []int64{1, 1, 1, 1, 1}, follows{driver: cause.Steps, every: 1, times: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := &Row{Births: series.Births{Steps: c.steps, Weights: c.weights}}
			if got := (&Result{run: &snapshot.Run{}}).driver(row); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
