package checkpoint

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/engine"
)

// Encode writes a checkpoint of the state. Tensors are brought to the host one
// after the other, so that it takes the memory of the largest. It refuses names
// that are empty, not UTF-8, too long, or given twice. It panics as operations do.
func Encode(w io.Writer, o engine.Ops, s State) error {
	head, err := header(s)
	if err != nil {
		return err
	}
	sum := xxhash.New()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(head); err != nil {
		return err
	}
	v := o.Valid()
	for _, n := range s.Tensors {
		if _, err := out.Write(download(v, n.Tensor)); err != nil {
			return err
		}
	}
	_, err = w.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	return err
}

// header is what comes before the elements.
func header(s State) ([]byte, error) {
	if s.Step < 0 || s.Epoch < 0 {
		return nil, fmt.Errorf("step %d of epoch %d: neither is below 0", s.Step, s.Epoch)
	}
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Step))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Epoch))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Counters)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Tensors)))
	var err error
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		if b, err = appendName(b, name); err != nil {
			return nil, err
		}
		b = binary.LittleEndian.AppendUint64(b, s.Counters[name])
	}
	seen := make(map[string]bool, len(s.Tensors))
	for _, n := range s.Tensors {
		if seen[n.Name] {
			return nil, fmt.Errorf("two tensors have the name %q", n.Name)
		}
		seen[n.Name] = true
		if b, err = appendName(b, n.Name); err != nil {
			return nil, err
		}
		shape := n.Tensor.Shape()
		b = append(b, byte(n.Tensor.DType()), byte(shape.Rank))
		for _, d := range shape.Dims[:shape.Rank] {
			if d > math.MaxInt32 {
				return nil, fmt.Errorf("tensor %q has the extent %d; at most 2^31-1 can be saved", n.Name, d)
			}
			b = binary.LittleEndian.AppendUint32(b, uint32(d))
		}
	}
	return b, nil
}

func appendName(b []byte, name string) ([]byte, error) {
	if name == "" || len(name) > math.MaxUint16 || !utf8.ValidString(name) {
		return nil, fmt.Errorf("%q is no name to save under: it is empty, not UTF-8 or too long", name)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	return append(b, name...), nil
}
