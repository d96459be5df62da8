package baseline

import (
	"math"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Effects are the effects of a change other than on leaks.
type Effects struct {
	Losses Losses
	// StepTime is the duration of a step, before and after; zero if a run is too short.
	StepTime [2]StepTime
	// Peaks are the highest live memory on each device that both runs have, in the order of the run before.
	Peaks []Peak
	// Bands show how steady the memory of each device is that both runs have, except the process.
	Bands []Bands
}

// Bands is how much the memory of a device varies after warm-up, before and after.
type Bands struct{ Before, After diff.Steadiness }

// Losses compares the losses of two runs bit by bit, in order.
type Losses struct {
	Recorded [2]bool // by the run before, and by the run after
	Common   int     // number of compared losses: as many as the shorter run has
	Differs  bool
	// Step is the first step with a different loss; Before and After are the two losses.
	Step          int64
	Before, After float64
}

// Equal reports whether there are losses, and all are the same.
func (l *Losses) Equal() bool { return l.Common > 0 && !l.Differs }

// StepTime is the duration of a step in seconds: the median of the intervals between snapshots, and their quartiles.
type StepTime struct {
	Low, Median, High float64
	// Waited is the share of the time for which the main thread waited for a processor; Unknown if that was not
	// recorded.
	Waited  float64
	Unknown bool
}

// Peak is the highest live memory on a device, before and after.
type Peak struct {
	Device        snapshot.Device
	Before, After snapshot.Bytes
}

const (
	// fewestIntervals is how many intervals a run needs for its quartiles to be meaningful.
	fewestIntervals = 4
	// worse is the ratio above which more counts as worse: two runs of one program differ by less.
	worse = 1.05
	// busyShare is the share of waiting for a processor above which a machine is busy. Other work then slows steps by
	// more than the waiting, since PyTorch's threads wait for each other: by 1.7 between two runs of one program that
	// waited for three quarters of the time.
	busyShare = 0.05
	// noFigure is the recorder's value if the system does not report waiting times.
	noFigure = 1e9 * time.Second
)

// Busy reports whether one of the runs waited for a processor, so that step times depend more on the machine than on
// the program.
func (e *Effects) Busy() bool {
	return e.StepTime[0].Waited > busyShare || e.StepTime[1].Waited > busyShare
}

// MayBeBusy reports whether it is unknown for one of the runs.
func (e *Effects) MayBeBusy() bool { return e.StepTime[0].Unknown || e.StepTime[1].Unknown }

// Slower reports whether steps take longer after, by more than their times vary and more than the run waited.
func (e *Effects) Slower() bool {
	before, after := e.StepTime[0], e.StepTime[1]
	worked := 1 - after.Waited
	return e.Longer() && worked*after.Median > worse*before.Median && worked*after.Low > before.High
}

// Longer reports whether the median step takes longer after, whatever the reason.
func (e *Effects) Longer() bool {
	return e.StepTime[0].Median > 0 && e.StepTime[1].Median > worse*e.StepTime[0].Median
}

// Higher reports whether the peak is higher after.
func (p *Peak) Higher() bool { return float64(p.After) > worse*float64(p.Before) }

// EffectsOf compares the losses, step times and memory of two runs.
func EffectsOf(before, after *diff.Result) Effects {
	a, b := before.Run(), after.Run()
	return Effects{
		Losses:   CompareLosses(a.Losses, b.Losses),
		StepTime: [2]StepTime{stepTime(a), stepTime(b)},
		Peaks:    peaks(a, b),
		Bands:    bands(before.Steady(), after.Steady()),
	}
}

func bands(before, after []diff.Steadiness) []Bands {
	var out []Bands
	for _, was := range before {
		i := slices.IndexFunc(after, func(is diff.Steadiness) bool {
			return is.Device.Kind == was.Device.Kind && is.Device.Index == was.Device.Index
		})
		if i >= 0 && was.Device.Kind != snapshot.Process {
			out = append(out, Bands{was, after[i]})
		}
	}
	return out
}

// CompareLosses compares the losses that both programs marked, or else those on which both called backward. Either
// may be nil.
func CompareLosses(before, after *snapshot.Losses) Losses {
	l := Losses{Recorded: [2]bool{recorded(before), recorded(after)}}
	if before == nil || after == nil {
		return l
	}
	was, is := before.Marked, after.Marked
	if len(was) == 0 || len(is) == 0 {
		was, is = before.Backward, after.Backward
	}
	l.Common = min(len(was), len(is))
	for i := range l.Common {
		if was[i].Step != is[i].Step || !sameBits(was[i].Value, is[i].Value) {
			l.Differs, l.Step, l.Before, l.After = true, was[i].Step, was[i].Value, is[i].Value
			return l
		}
	}
	return l
}

func recorded(l *snapshot.Losses) bool { return l != nil && len(l.Marked)+len(l.Backward) > 0 }

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// stepTime is the step time of a run, without the first interval, in which a program warms up.
func stepTime(run *snapshot.Run) StepTime {
	var times []float64
	var spent, waited time.Duration
	unknown := false
	for i := 2; i < len(run.Snapshots); i++ {
		from, to := run.Snapshots[i-1].Mark, run.Snapshots[i].Mark
		if from.Step == snapshot.NoStep || to.Step <= from.Step || from.Time.IsZero() || !to.Time.After(from.Time) {
			continue
		}
		took := to.Time.Sub(from.Time)
		times = append(times, took.Seconds()/float64(to.Step-from.Step))
		was, is := run.Snapshots[i-1].Waited, run.Snapshots[i].Waited
		unknown = unknown || was <= 0 || is < was || is >= noFigure
		spent, waited = spent+took, waited+is-was
	}
	if len(times) < fewestIntervals {
		return StepTime{}
	}
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(share*float64(len(times)-1)+0.5)] }
	of := StepTime{Low: at(0.25), Median: at(0.5), High: at(0.75), Unknown: unknown}
	if !unknown {
		of.Waited = min(1, float64(waited)/float64(spent))
	}
	return of
}

func peaks(before, after *snapshot.Run) []Peak {
	var out []Peak
	was, is := most(before), most(after)
	for _, p := range was {
		if i := slices.IndexFunc(is, func(q Peak) bool { return q.Device.Kind == p.Device.Kind && q.Device.Index == p.Device.Index }); i >= 0 {
			out = append(out, Peak{p.Device, p.Before, is[i].Before})
		}
	}
	return out
}

// most returns the highest live memory on each device of known size, as Before.
func most(run *snapshot.Run) []Peak {
	var out []Peak
	for _, s := range run.Snapshots {
		for _, d := range s.Devices {
			live := max(d.Meters.Allocated, d.Peak)
			if d.Kind == snapshot.Process {
				live = max(d.Meters.Driver, d.Peak)
			}
			if d.Kind.Unsized() || live <= 0 {
				continue
			}
			i := slices.IndexFunc(out, func(p Peak) bool { return p.Device.Kind == d.Kind && p.Device.Index == d.Index })
			if i < 0 {
				i = len(out)
				out = append(out, Peak{Device: d})
			}
			out[i].Before = max(out[i].Before, live)
		}
	}
	return out
}
