package gpu

import (
	"slices"

	"github.com/memdiag/memdiag/engine"
)

const (
	// partLength is how many elements one invocation folds before another takes
	// over: enough to be worth one, and few enough for a float32 sum.
	partLength = 512
	// maxParts is the partial results that half of the scratch holds.
	maxParts = scratchBytes / 2 / engine.ElementSize
)

// fold is a reduction as shaders see it.
type fold struct {
	shader       string
	from, to     binding
	fromAt, toAt uint32 // elements
	kept, folded []axis // of the source; strides[0] alone counts
	count        int    // results
	length       int    // elements that one is folded of
}

// Reduce folds axes; see engine.Kernels.
func (k *kernels) Reduce(op engine.ReduceOp, dst, a engine.View) {
	if dst.Shape.Elements() == 0 {
		return
	}
	if a.Shape.Elements() == 0 { // only a sum has a value then
		k.Fill(dst, 0)
		return
	}
	if !k.fits(dst, a) {
		at, ok := outermost(dst)
		if !ok {
			k.tooLarge("reduce "+op.String(), a)
			return
		}
		first, second := halves(at, []engine.View{dst, a})
		k.Reduce(op, first[0], first[1])
		k.Reduce(op, second[0], second[1])
		return
	}
	f := fold{shader: "reduce_" + op.String()}
	kept, folded := a, a
	for axis := range a.Shape.Rank {
		if dst.Shape.Dims[axis] == a.Shape.Dims[axis] {
			folded.Shape.Dims[axis] = 1
		} else {
			kept.Shape.Dims[axis] = 1
		}
	}
	f.kept, f.folded = axes([]engine.View{kept}), axes([]engine.View{folded})
	f.count, f.length = kept.Shape.Elements(), folded.Shape.Elements()
	f.from, f.fromAt = k.bind(a)
	f.to, f.toAt = k.bind(dst)
	k.fold(f, op != engine.ReduceArgMax)
}

// fold runs passes until each result is there. Where parts may be folded on their own,
// many invocations share a long one, and their results are folded in the next pass.
func (k *kernels) fold(f fold, parted bool) {
	for half := 0; ; half ^= 1 {
		parts := 1
		if parted {
			parts = max(1, min((f.length+partLength-1)/partLength, maxParts/f.count))
		}
		pass := f
		if parts > 1 {
			pass.to = binding{k.queue.scratch.buffer, uint64(half * scratchBytes / 2), scratchBytes / 2}
			pass.toAt = 0
		}
		k.pass(pass, parts)
		if parts == 1 {
			return
		}
		f.from, f.fromAt, f.length = pass.to, 0, parts
		f.kept = []axis{{extent: f.count, strides: [maxBindings]int{parts}}}
		f.folded = []axis{{extent: parts, strides: [maxBindings]int{1}}}
	}
}

func (k *kernels) pass(f fold, parts int) {
	chunk := (f.length + parts - 1) / parts
	params := append(make([]uint32, 0, paramBytes/4),
		uint32(f.count*parts), uint32(parts), uint32(chunk), uint32(f.length),
		uint32(len(f.kept)), uint32(len(f.folded)), f.toAt, f.fromAt)
	for _, a := range slices.Concat(f.kept, f.folded) {
		params = append(params, uint32(a.extent), uint32(a.strides[0]), 0, 0)
	}
	k.run(f.shader, f.count*parts, params, f.to, f.from)
}
