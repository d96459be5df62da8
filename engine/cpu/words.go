package cpu

import (
	"unsafe"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
)

// word is an element as host memory holds it.
type word interface{ float32 | int32 }

// words returns the elements of a view's block from the view's offset on.
//
// A conversion element by element would cost as much as the kernels themselves;
// blocks are 64-byte aligned, so the cast is sound.
func words[T word](v engine.View) []T {
	b := v.Buffer.Memory.(*mem.HostMemory).Bytes()[v.Buffer.Offset : v.Buffer.Offset+v.Buffer.Size]
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/engine.ElementSize)[v.Offset:]
}

// flat returns the elements of a contiguous view.
func flat[T word](v engine.View) []T { return words[T](v)[:v.Shape.Elements()] }

// raw returns the bytes of a contiguous view.
func raw(v engine.View) []byte {
	b := v.Buffer.Memory.(*mem.HostMemory).Bytes()[v.Buffer.Offset:]
	return b[v.Offset*engine.ElementSize:][:v.Shape.Elements()*engine.ElementSize]
}
