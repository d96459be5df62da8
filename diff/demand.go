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

// Demand is how the peak of a device depends on the input sizes that the program marked.
type Demand struct {
	Device snapshot.Device
	Phase  string
	// Sizes is how many distinct inputs reached a new peak. Fitted is how many of the larger ones the fit uses, and
	// Smallest and Largest are the ends of these.
	Sizes, Fitted     int
	Smallest, Largest Input
	// Why says why the figures below are unknown; "" if they are known.
	Why string
	// Fixed is the memory that no input changes. Sample and Token are what each sample and each token adds; 0 if the
	// fit has no such part.
	Fixed, Sample, Token float64
	Off                  float64 // the largest residual, as a share of the highest peak
	// Next is the largest input with its batch doubled, or with its length doubled if the batch does not vary. Need
	// is the peak of Next, and NeedOff the half width of its 95 % interval.
	Next          Input
	Need, NeedOff snapshot.Bytes
	// Fits is the batch size, at the largest length, above which even the lower end of the need exceeds the device's
	// Limit. That batch itself may not fit, since reserved memory that is not live also counts toward the Limit. It
	// is 0 if unknown or above Next.
	Fits int64
}

// Input is the size of a step's input. A part is 0 if unknown.
type Input struct{ Batch, Length int64 }

// Tokens is the number of tokens in all samples.
func (i Input) Tokens() int64 { return max(i.Batch, 1) * i.Length }

// size orders inputs.
func (i Input) size() int64 { return max(i.Batch, 1) * max(i.Length, 1) }

const (
	// fewestSizes is how many distinct inputs a fit of two figures needs; a fit of three needs one more.
	fewestSizes = 5
	// rangeOfSizes is the least ratio of the largest input to the smallest.
	rangeOfSizes = 1.5
	// leastRise is the least difference of the peaks, as a share of the highest.
	leastRise = 0.02
	// offRise is how far a peak may be off the fit, as a share of this difference.
	offRise = 0.1
	// offNext is how far a prediction may be off, as a share of it, from noise and from curvature of the peaks.
	offNext = 0.1
	// cuts is how many times the smallest inputs are left out.
	cuts = 16
	// ahead is the predicted input, as a multiple of the largest.
	ahead = 2
)

// Demand returns, for each device with marked peaks, how they depend on the input, in the phase with the highest of
// the peaks among those in which the input varies.
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
			continue // the program marked something that is not a number
		}
		k := key{kindIndex{p.Kind, p.Index}, p.Phase}
		if reached[k] == nil {
			reached[k] = make(map[Input]float64)
		}
		reached[k][Input{p.Batch, p.Length}] = float64(p.Bytes) // peaks are recorded in rising order
		if len(reached[k]) > 1 {
			highest[k.device] = k // the last peak is the highest
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

// leaksOn reports whether a device's memory grows over time, whatever the input: a leak was found there, or the
// process grows.
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
	// The peak of small inputs may be the optimizer's step, which no input changes. Then the peaks are not on one
	// line, and only the larger inputs count.
	for less := max(1, (len(inputs)-fewestSizes)/cuts); bent && len(inputs) >= fewestSizes+less; {
		inputs, peaks = inputs[less:], peaks[less:]
		d.Fitted, d.Smallest = len(inputs), inputs[0]
		if bent = d.fitTo(inputs, peaks); d.Why == "" {
			return d
		}
	}
	return all
}

// fitTo sets the figures of d from the peaks of inputs, or Why. bent reports whether the larger inputs alone may lie
// on a line.
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

// A part is a figure of the fit, and the property of the input that it is multiplied by.
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

// varies reports whether a part of the input is known for all inputs and not equal in all.
func varies(inputs []Input, of func(Input) int64) bool {
	return !slices.ContainsFunc(inputs, func(i Input) bool { return of(i) <= 0 }) && slices.ContainsFunc(inputs, func(i Input) bool { return of(i) != of(inputs[0]) })
}

// partsOf returns the models to try, the simplest first. A part that does not vary, or is not known for all inputs,
// is not in them.
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

// fit sets the figures of d, or says why not. bent reports that the peaks do not lie on a line.
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
		next.Length *= ahead // Fixed includes what each sample takes whatever its length
	}
	// curve is the term for peaks that do not grow in proportion to the size: attention takes the square of the
	// length.
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
