// Package checkpoint saves the state of a training and brings it back, so that a
// run goes on as if it had never stopped.
//
// # Conventions
//
// A run that is resumed goes on to the bit if its State has all that the next
// step reads: of each module nn.Stateful's State, which has running statistics
// beside the parameters; of each optimizer its State; and among the Counters the
// Draws of each engine.Random, for its Seek. Parts that name tensors alike are
// told apart with Part. The loader needs nothing of its own where each step takes
// one batch: Step is its Options.Start, and the loop's. Metrics and other
// sums over an epoch are not saved unless the program puts them in. The example
// of Writer.Phase has all of it.
//
// # Format
//
// A file has a header, the elements of all tensors, and a checksum. Numbers are
// little-endian. Version 1:
//
//	8 bytes  "MDCKPT1\n"
//	i64      step: training steps completed, at least 0
//	i64      epoch, at least 0
//	u32      number of counters
//	u32      number of tensors
//	         each counter, by name: u16 length of the name, name (UTF-8), u64 value
//	         each tensor: u16 length of the name, name (UTF-8), u8 type (0 float32,
//	         1 int32), u8 rank (at most 6), u32 for each extent, outermost first
//	         the elements of each tensor in that order, row-major, 4 bytes each
//	u64      xxhash64 of all bytes before it
//
// Nothing is aligned or padded, and nothing comes after the checksum: the header
// gives the length of the file. Names are not empty and occur once among counters
// and once among tensors.
package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/memdiag/memdiag/engine"
)

// Ending is what names of checkpoint files end with.
const Ending = ".memckpt"

// The fixed parts of a file, in bytes.
const (
	magic        = "MDCKPT1\n"
	headSize     = 32
	checksumSize = 8
)

// State is what a training is to be continued from.
type State struct {
	Step, Epoch int64
	// Counters are positions in streams: of random draws, of batches.
	Counters map[string]uint64
	// Tensors are parameters, running statistics, optimizer state.
	Tensors []engine.Named
}

// File is a checkpoint in the machine's own memory.
type File struct {
	Step, Epoch int64
	Counters    map[string]uint64 // never nil

	name    string // as errors name it
	tensors []stored
	index   map[string]int
}

// stored is a tensor's elements as they are in a file.
type stored struct {
	name  string
	dtype engine.DType
	shape engine.Shape
	data  []byte
}

// Names lists the tensors in the order in which they were saved.
func (f *File) Names() []string {
	names := make([]string, len(f.tensors))
	for i := range f.tensors {
		names[i] = f.tensors[i].name
	}
	return names
}

// Restore writes the saved elements over those of the given tensors, found by
// name. Every one of them must be in the file, with its type and shape, else
// nothing is written; tensors of the file that are not asked for are left out.
// Whoever wants to see that the two lists are equal compares with Names.
func (f *File) Restore(o engine.Ops, into []engine.Named) error {
	for _, n := range into {
		i, ok := f.index[n.Name]
		if !ok {
			return fmt.Errorf("%s: no tensor %q", f.name, n.Name)
		}
		if s := &f.tensors[i]; s.shape != n.Tensor.Shape() || s.dtype != n.Tensor.DType() {
			return fmt.Errorf("%s: tensor %q is %s %v, and is to be restored into %v", f.name, n.Name, s.dtype, s.shape, n.Tensor)
		}
	}
	v := o.Valid()
	for _, n := range into {
		err := engine.Run(v, func(*engine.Scope) error { // one copy at a time
			v.Assign(n.Tensor, f.tensors[f.index[n.Name]].upload(v))
			return v.Sync()
		})
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.name, n.Name, err)
		}
	}
	return nil
}

// Part names the tensors of one part of a training after it, so that parts with
// names of their own share a State: "optimizer" makes "optimizer.3.velocity" of
// "3.velocity". Restore takes the same list.
func Part(name string, tensors []engine.Named) []engine.Named {
	all := make([]engine.Named, len(tensors))
	for i, n := range tensors {
		all[i] = engine.Named{Name: name + "." + n.Name, Tensor: n.Tensor}
	}
	return all
}

// UploadPart makes new tensors of all that Part has named so, in the innermost
// open scope and under the part's own names: what an optimizer's Load takes. It
// panics as operations do.
func (f *File) UploadPart(o engine.Ops, name string) []engine.Named {
	var all []engine.Named
	for i := range f.tensors {
		if own, ok := strings.CutPrefix(f.tensors[i].name, name+"."); ok {
			all = append(all, engine.Named{Name: own, Tensor: f.tensors[i].upload(o)})
		}
	}
	return all
}

// Upload makes a new tensor of a saved one in the innermost open scope, for state
// that has no tensor yet, such as a fresh optimizer's; ok is false where the file
// has none of that name. It panics as operations do.
func (f *File) Upload(o engine.Ops, name string) (t *engine.Tensor, ok bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return f.tensors[i].upload(o), true
}

func (s *stored) upload(o engine.Ops) *engine.Tensor {
	n := s.shape.Elements()
	if s.dtype == engine.Int32 {
		ints := make([]int32, n)
		for i := range ints {
			ints[i] = int32(binary.LittleEndian.Uint32(s.data[i*engine.ElementSize:]))
		}
		return o.FromInts(ints, s.shape.Slice()...)
	}
	floats := make([]float32, n)
	for i := range floats {
		floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.data[i*engine.ElementSize:]))
	}
	return o.FromFloats(floats, s.shape.Slice()...)
}

// download brings a tensor's elements to the host as they are in a file.
func download(o engine.Ops, t *engine.Tensor) []byte {
	data := make([]byte, 0, t.Shape().Elements()*engine.ElementSize)
	if t.DType() == engine.Int32 {
		for _, x := range o.Ints(t) {
			data = binary.LittleEndian.AppendUint32(data, uint32(x))
		}
		return data
	}
	for _, x := range o.Floats(t) {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}
