package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Demand is how the peak of a device depends on the size of the input, by the sizes that the program marked.
type Demand struct {
	Device snapshot.Device
	Phase  string
	// Sizes are how many distinct inputs reached a new peak, and Fitted the larger ones of these that the fit is of; Smallest and
	// Largest are of those.
	Sizes, Fitted     int
	Smallest, Largest Input
	// Why says why nothing below is known; "" where it is.
	Why string
	// Fixed is what no input changes; Sample and Token are what each sample and each token adds, 0 where the fit has no such part.
	Fixed, Sample, Token float64
	Off                  float64 // the largest residual, as a share of the highest peak
	// Next is the largest input with its batch doubled, or its length where the batch does not vary, Need its peak, and NeedOff by how much that may be off, at 95 %.
	Next          Input
	Need, NeedOff snapshot.Bytes
	// Fits is the batch, at the largest length, above which even the least that may be needed is more than the device's Limit. Whether
	// it fits itself is not known: the Limit also has what is reserved and not live. 0 where none is known, or it is beyond Next.
	Fits int64
}

// Input is the size of a step's input. A part that is 0 is not known.
type Input struct{ Batch, Length int64 }

// Tokens are those of all samples.
func (i Input) Tokens() int64 { return max(i.Batch, 1) * i.Length }

// size orders inputs.
func (i Input) size() int64 { return max(i.Batch, 1) * max(i.Length, 1) }

const (
	// fewestSizes distinct inputs make a fit of two figures, and one more makes one of three.
	fewestSizes = 5
	// rangeOfSizes is the least ratio of the largest input to the smallest.
	rangeOfSizes = 1.5
	// leastRise is by which share of the highest peak the peaks must differ.
	leastRise = 0.02
	// offRise is by which share of this difference a peak may be off the fit.
	offRise = 0.1
	// offNext is by which share what is foretold may be off: by the noise of the peaks, and by what bends them.
	offNext = 0.1
	// cuts are how many times smaller inputs are left out.
	cuts = 16
	// ahead is how many times the largest input the fit is asked about.
	ahead = 2
)

// Demand tells for each device with marked peaks how these depend on the input, in the phase with the highest of those in which it varies.
func (r *Result) Demand() []Demand {
	if r.run == nil {
		return nil
	}
	type key struct {
		device kindIndex
		phase  string
	}
	reached := make(map[key]map[Input]float64)
	highest := make(map[kindIndex]key)
	for _, p := range r.run.Peaks {
		if p.Batch == 0 && p.Length == 0 {
			continue // what the program marked was no number
		}
		k := key{kindIndex{p.Kind, p.Index}, p.Phase}
		if reached[k] == nil {
			reached[k] = make(map[Input]float64)
		}
		reached[k][Input{p.Batch, p.Length}] = float64(p.Bytes) // later ones are higher
		if len(reached[k]) > 1 {
			highest[k.device] = k // the last is of the phase with the highest
		}
	}
	var out []Demand
	for _, d := range r.Last.Devices {
		k, ok := highest[kindIndex{d.Kind, d.Index}]
		if ok {
			out = append(out, demand(d, k.phase, reached[k], r.leaksOn(d)))
		}
	}
	return out
}

// leaksOn reports whether a device's memory grows with time, whatever the input: a leak was found there, or the process grows.
func (r *Result) leaksOn(d snapshot.Device) bool {
	process := d.Kind == snapshot.Process
	return process && r.ProcessGrowth() != nil || slices.ContainsFunc(r.Findings, func(f Finding) bool {
		of := f.Rows[0].Device
		return f.Verdict == Leak && (of.Kind == d.Kind && of.Index == d.Index || process && of.Kind.InProcess())
	})
}

type kindIndex struct {
	kind  snapshot.DeviceKind
	index int
}

func demand(device snapshot.Device, phase string, reached map[Input]float64, leaks bool) Demand {
	inputs := slices.SortedFunc(maps.Keys(reached), func(a, b Input) int {
		return cmp.Or(cmp.Compare(a.size(), b.size()), cmp.Compare(a.Batch, b.Batch))
	})
	d := Demand{Device: device, Phase: phase, Sizes: len(inputs), Fitted: len(inputs), Smallest: inputs[0], Largest: inputs[len(inputs)-1]}
	if leaks {
		d.Why = "the run leaks, so that later peaks are higher"
		return d
	}
	var peaks []float64
	for _, in := range inputs {
		peaks = append(peaks, reached[in])
	}
	all := d
	bent := all.fitTo(inputs, peaks)
	// The peak of small inputs may be the optimizer's step, which no input changes. Then the peaks bend, and the line of the larger
	// inputs counts.
	for less := max(1, (len(inputs)-fewestSizes)/cuts); bent && len(inputs) >= fewestSizes+less; {
		inputs, peaks = inputs[less:], peaks[less:]
		d.Fitted, d.Smallest = len(inputs), inputs[0]
		if bent = d.fitTo(inputs, peaks); d.Why == "" {
			return d
		}
	}
	return all
}

// fitTo sets the figures of d by peaks, each at an input, or says why there are none. Bent reports whether larger inputs alone
// may be on a line.
func (d *Demand) fitTo(inputs []Input, peaks []float64) (bent bool) {
	rise := slices.Max(peaks) - slices.Min(peaks)
	if rise < leastRise*slices.Max(peaks) {
		d.Why = "the peak is almost the same for all"
		return false
	}
	d.Why = "neither the batch nor the length is known of all"
	for _, parts := range partsOf(inputs) {
		if d.Why, bent = d.fit(parts, inputs, peaks, rise); d.Why == "" {
			return false
		}
	}
	return bent
}

// A part is a figure of the fit, and what of the input it is multiplied by.
type part struct {
	figure func(*Demand) *float64
	by     func(Input) int64
}

var (
	fixed  = part{func(d *Demand) *float64 { return &d.Fixed }, func(Input) int64 { return 1 }}
	sample = part{func(d *Demand) *float64 { return &d.Sample }, batchOf}
	token  = part{func(d *Demand) *float64 { return &d.Token }, Input.Tokens}
)

func batchOf(i Input) int64  { return i.Batch }
func lengthOf(i Input) int64 { return i.Length }

// varies reports whether a part of the input is known of all, and not the same in all.
func varies(inputs []Input, of func(Input) int64) bool {
	return !slices.ContainsFunc(inputs, func(i Input) bool { return of(i) <= 0 }) && slices.ContainsFunc(inputs, func(i Input) bool { return of(i) != of(inputs[0]) })
}

// partsOf are the models to try, the simplest first: what does not vary, or is not known of all, tells nothing.
func partsOf(inputs []Input) [][]part {
	batches, lengths := varies(inputs, batchOf), varies(inputs, lengthOf)
	switch {
	case batches && lengths:
		return [][]part{{fixed, token}, {fixed, sample, token}}
	case lengths:
		return [][]part{{fixed, token}}
	case batches:
		return [][]part{{fixed, sample}}
	}
	return nil
}

// fit sets the figures of d, or says why there are none, and whether that is since the peaks are on no line.
func (d *Demand) fit(parts []part, inputs []Input, peaks []float64, rise float64) (why string, bent bool) {
	row := func(in Input) (row []float64) {
		for _, p := range parts {
			row = append(row, float64(p.by(in)))
		}
		return row
	}
	var rows [][]float64
	for _, in := range inputs {
		rows = append(rows, row(in))
	}
	if need := fewestSizes + len(parts) - 2; len(inputs) < need {
		return fmt.Sprintf("a fit takes %d sizes", need), false
	}
	var sizes []float64
	for _, in := range inputs {
		sizes = append(sizes, float64(parts[1].by(in)))
	}
	if slices.Max(sizes) < rangeOfSizes*slices.Min(sizes) {
		return fmt.Sprintf("the largest is less than %g times the smallest", rangeOfSizes), false
	}
	f, ok := trend.LeastSquares(rows, peaks)
	if !ok {
		return "batch and length change only together", false
	}
	if f.Off > offRise*rise {
		return "the peak does not follow the size on a line: off by up to " + snapshot.Bytes(f.Off).String(), true
	}
	for i, c := range f.Coefficients {
		if c < 0 && (i > 0 || -c > leastRise*slices.Max(peaks)) {
			return "the peak falls where the input grows", false
		}
	}
	next, batches := d.Largest, varies(inputs, batchOf)
	if batches {
		next.Batch *= ahead
	} else {
		next.Length *= ahead // what each sample takes whatever its length is in Fixed
	}
	// curve is by what a peak bends that does not grow in proportion to the size: attention takes the square of the length.
	curve := func(i Input) float64 { return float64(i.Batch) * float64(i.Batch) }
	if varies(inputs, lengthOf) {
		curve = func(i Input) float64 { return float64(i.Tokens()) * float64(i.Length) }
	}
	value, off := f.At(row(next))
	for i, in := range inputs {
		rows[i] = append(rows[i], curve(in))
	}
	if bent, ok := trend.LeastSquares(rows, peaks); ok {
		by, _ := bent.At(append(row(next), curve(next)))
		off = math.Hypot(off, by-value)
	}
	if off > offNext*value {
		return fmt.Sprintf("what twice the largest takes is not known well: %s, off by up to %s", snapshot.Bytes(value), snapshot.Bytes(off)), true
	}
	for i, p := range parts {
		*p.figure(d) = max(f.Coefficients[i], 0)
	}
	d.Off, d.Next, d.Need, d.NeedOff = f.Off/slices.Max(peaks), next, snapshot.Bytes(value), snapshot.Bytes(off)
	if limit := float64(d.Device.Limit); batches && limit > d.Fixed && value-off > limit {
		d.Fits = int64((limit - d.Fixed) / (d.Sample + d.Token*float64(d.Largest.Length) - off/float64(next.Batch)))
	}
	return "", false
}
