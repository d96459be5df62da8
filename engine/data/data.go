// Package data brings batches to train on to a device: from a Dataset by a
// Loader with workers, or from experience by a Replay buffer. Data sets that are
// generated, such as Rectangles, are named as such; package digits is a real one.
package data

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// Array is host data, row-major: Floats or Ints holds as many elements as the
// shape has, the other is nil. A shape without extents is a scalar's.
type Array struct {
	Shape  []int
	Floats []float32
	Ints   []int32
}

// Dataset is a list of examples. Its methods are called by several goroutines at
// once.
type Dataset interface {
	// Len counts the examples.
	Len() int
	// Example returns the arrays of example i in [0, Len): of the same number, types
	// and shapes for every i. The caller does not write to them.
	Example(i int) ([]Array, error)
}

// Sequences is a Dataset whose examples differ in length, which is the outermost
// extent of their first array. In a batch, arrays that are as long as their
// examples are padded with zeros after.
type Sequences interface {
	Dataset
	// Length is the length of example i. It is cheap: Loader asks for all of them.
	Length(i int) int
}

// Host is a batch in the machine's own memory.
type Host struct {
	Arrays   []Array // those of the examples, stacked along a new outermost axis
	Examples []int   // which of the data set, row by row
	// Lengths are those of Sequences before padding, row by row; nil for other data.
	Lengths  []int
	Epoch    int64 // from 0
	EpochEnd bool  // the last batch of its epoch
}

// Longest is the length that Sequences were padded to; 0 for other data.
func (h *Host) Longest() int {
	if h.Lengths == nil {
		return 0
	}
	return slices.Max(h.Lengths)
}

// Mask is 1 where a sequence has an element and 0 where it was padded, [n
// longest], row-major; nil for data without lengths.
func (h *Host) Mask() []float32 {
	longest := h.Longest()
	mask := make([]float32, len(h.Lengths)*longest)
	for row, length := range h.Lengths {
		for i := range length {
			mask[row*longest+i] = 1
		}
	}
	return mask
}

// collate stacks the examples of a batch.
func collate(set Dataset, p planned) (*Host, error) {
	h := &Host{Examples: p.examples, Epoch: p.epoch, EpochEnd: p.last}
	rows := make([][]Array, len(p.examples))
	for i, at := range p.examples {
		var err error
		if rows[i], err = set.Example(at); err != nil {
			return nil, fmt.Errorf("example %d: %w", at, err)
		}
		if len(rows[i]) != len(rows[0]) {
			return nil, fmt.Errorf("example %d has %d arrays, and example %d has %d", at, len(rows[i]), p.examples[0], len(rows[0]))
		}
		for field, a := range rows[i] {
			if !a.full() {
				return nil, fmt.Errorf("example %d: array %d has the shape %v, and %d floats and %d ints", at, field, a.Shape, len(a.Floats), len(a.Ints))
			}
		}
	}
	if s, ok := set.(Sequences); ok {
		for i, at := range p.examples {
			h.Lengths = append(h.Lengths, s.Length(at))
			if got := rows[i]; len(got) == 0 || len(got[0].Shape) == 0 || got[0].Shape[0] != h.Lengths[i] {
				return nil, fmt.Errorf("example %d: its first array has not the length %d that the data set told", at, h.Lengths[i])
			}
		}
	}
	for field := range rows[0] {
		stacked, err := h.stack(rows, field)
		if err != nil {
			return nil, err
		}
		h.Arrays = append(h.Arrays, stacked)
	}
	return h, nil
}

// stack joins one array of all examples, padded where it has their lengths.
func (h *Host) stack(rows [][]Array, field int) (Array, error) {
	first := rows[0][field]
	shape := slices.Clone(first.Shape)
	padded := h.sequences(rows, field)
	if padded {
		shape[0] = h.Longest()
	}
	elements := 1
	for _, d := range shape {
		elements *= d
	}
	out := Array{Shape: append([]int{len(rows)}, shape...)}
	if first.Floats != nil {
		out.Floats = make([]float32, len(rows)*elements)
	} else {
		out.Ints = make([]int32, len(rows)*elements)
	}
	for i, row := range rows {
		want := slices.Clone(shape)
		if padded {
			want[0] = h.Lengths[i]
		}
		if a := row[field]; !slices.Equal(a.Shape, want) || (a.Floats == nil) != (first.Floats == nil) {
			return Array{}, fmt.Errorf("example %d: array %d, %s %v, does not go with example %d's, %s %v",
				h.Examples[i], field, a.dtype(), a.Shape, h.Examples[0], first.dtype(), first.Shape)
		}
		if first.Floats != nil {
			copy(out.Floats[i*elements:], row[field].Floats)
		} else {
			copy(out.Ints[i*elements:], row[field].Ints)
		}
	}
	return out, nil
}

// sequences reports whether the array is as long as each example is. One that is
// by chance in all of them needs no padding, and gets none.
func (h *Host) sequences(rows [][]Array, field int) bool {
	for i, row := range rows {
		if h.Lengths == nil || len(row) <= field || len(row[field].Shape) == 0 || row[field].Shape[0] != h.Lengths[i] {
			return false
		}
	}
	return true
}

func (a *Array) dtype() engine.DType {
	if a.Floats != nil {
		return engine.Float32
	}
	return engine.Int32
}

// full reports whether the array has the elements that its shape says.
func (a *Array) full() bool {
	n := 1
	for _, d := range a.Shape {
		if d < 0 {
			return false
		}
		n *= d
	}
	return n == len(a.Floats)+len(a.Ints)
}
