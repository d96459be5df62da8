package baseline_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

func TestLossesAreComparedBitByBit(t *testing.T) {
	of := func(values ...float64) (out []snapshot.Loss) {
		for i, v := range values {
			out = append(out, snapshot.Loss{Step: int64(i + 1), Value: v})
		}
		return out
	}
	backward := func(values ...float64) *snapshot.Losses { return &snapshot.Losses{Backward: of(values...)} }
	both, one := [2]bool{true, true}, [2]bool{true, false}
	for _, c := range []struct {
		name          string
		before, after *snapshot.Losses
		want          baseline.Losses
	}{
		{"the same, of a longer run", backward(3, math.NaN()), backward(3, math.NaN(), 1), baseline.Losses{Recorded: both, Common: 2}},
		{"one bit", backward(1, 0.1), backward(1, math.Nextafter(0.1, 1)), baseline.Losses{Recorded: both, Common: 2, Differs: true, Step: 2, Before: 0.1, After: math.Nextafter(0.1, 1)}},
		{"zeros of two signs", backward(0), backward(math.Copysign(0, -1)), baseline.Losses{Recorded: both, Common: 1, Differs: true, Step: 1, After: math.Copysign(0, -1)}},
		{"at another step", backward(1), &snapshot.Losses{Backward: []snapshot.Loss{{Step: 2, Value: 1}}}, baseline.Losses{Recorded: both, Common: 1, Differs: true, Step: 1, Before: 1, After: 1}},
		{"what both mark counts", &snapshot.Losses{Backward: of(1), Marked: of(5)}, &snapshot.Losses{Backward: of(2), Marked: of(5)}, baseline.Losses{Recorded: both, Common: 1}},
		{"what one marks does not", &snapshot.Losses{Backward: of(1), Marked: of(5)}, backward(1), baseline.Losses{Recorded: both, Common: 1}},
		{"none after", backward(1), nil, baseline.Losses{Recorded: one}},
	} {
		got := baseline.CompareLosses(c.before, c.after)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); diff != "" || got.Equal() != (c.want.Common > 0 && !c.want.Differs) {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// stepTimeOf is the step time of a run with a snapshot every ten steps. Times are milliseconds a step between two of them, and waited is
// the share in which the program waited for a processor; below 0 it is not recorded.
func stepTimeOf(t *testing.T, times []float64, waited float64) baseline.StepTime {
	t.Helper()
	r := analysis(t, 100, 1, map[string]int64{"keep": 1})
	at, queued := time.Unix(1000, 0), time.Second
	for k, s := range r.Run().Snapshots {
		if k > 0 {
			took := time.Duration(times[k%len(times)] * 10 * float64(time.Millisecond))
			at, queued = at.Add(took), queued+time.Duration(waited*float64(took))
		}
		s.Mark.Time = at
		if waited >= 0 {
			s.Waited = queued
		}
	}
	return baseline.EffectsOf(r, r).StepTime[0]
}

// TestStepsOfABusyMachineAreNotCompared: two runs of one program were said to be slower by 1.7 while other programs ran.
func TestStepsOfABusyMachineAreNotCompared(t *testing.T) {
	for _, c := range []struct {
		name                  string
		before, after         []float64
		waited, then          float64
		busy, unknown, slower bool
	}{
		{"both idle", []float64{10}, []float64{12}, 0.001, 0.001, false, false, true},
		{"after on a busy machine", []float64{10}, []float64{40}, 0.001, 0.6, true, false, true},
		{"before on a busy machine", []float64{40}, []float64{12}, 0.6, 0.001, true, false, false},
		{"both on a busy machine", []float64{46}, []float64{79}, 0.73, 0.77, true, false, false},
		{"no more than the waiting", []float64{10}, []float64{10.8}, 0, 0.04, false, false, false},
		{"waiting is not recorded", []float64{10}, []float64{12}, -1, -1, false, true, true},
		{"it is in one of them", []float64{10}, []float64{12}, 0, -1, false, true, true},
	} {
		e := baseline.Effects{StepTime: [2]baseline.StepTime{stepTimeOf(t, c.before, c.waited), stepTimeOf(t, c.after, c.then)}}
		if e.Busy() != c.busy || e.MayBeBusy() != c.unknown || e.Slower() != c.slower {
			t.Errorf("%s: busy %v, unknown %v, slower %v of %+v", c.name, e.Busy(), e.MayBeBusy(), e.Slower(), e.StepTime)
		}
	}
}

func TestStepsAreSlowerBeyondTheirSpread(t *testing.T) {
	effects := func(before, after []float64) baseline.Effects {
		return baseline.Effects{StepTime: [2]baseline.StepTime{stepTimeOf(t, before, 0), stepTimeOf(t, after, 0)}}
	}
	for _, c := range []struct {
		name          string
		before, after []float64
		slower        bool
	}{
		{"as fast", []float64{10}, []float64{10}, false},
		{"by a fifth", []float64{10, 10.1, 9.9}, []float64{12, 12.1, 11.9}, true},
		{"by a fifth, of times that vary more", []float64{8, 10, 14}, []float64{9, 12, 16}, false},
		{"by a hundredth", []float64{10}, []float64{10.1}, false},
	} {
		e := effects(c.before, c.after)
		if got := e.Slower(); got != c.slower || e.StepTime[0].Median == 0 {
			t.Errorf("%s: %v of %+v", c.name, got, e.StepTime)
		}
	}
}

func TestPeaksAreThoseOfDevicesThatBothRunsHave(t *testing.T) {
	few, many := analysis(t, 100, 1, map[string]int64{"keep": 10}), analysis(t, 100, 1, map[string]int64{"keep": 1})
	e := baseline.EffectsOf(few, many)
	if len(e.Peaks) != 1 || e.Peaks[0].Before != 10<<10 || e.Peaks[0].After != 100<<10 || !e.Peaks[0].Higher() {
		t.Errorf("%+v", e.Peaks)
	}
	if p := baseline.EffectsOf(many, many).Peaks[0]; p.Higher() {
		t.Errorf("%+v is higher than itself", p)
	}
}

func TestHowSteadyADeviceIsIsComparedBeforeAndAfter(t *testing.T) {
	growing, still := analysis(t, 100, 1, map[string]int64{"keep": 5}), analysis(t, 100, 1, map[string]int64{"keep": 1000})
	b := baseline.EffectsOf(growing, still).Bands
	if len(b) != 1 || b[0].Before.Live.Spread() < 0.1 || b[0].After.Live.Spread() != 0 {
		t.Errorf("%+v", b)
	}
}
