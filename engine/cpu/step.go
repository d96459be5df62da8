package cpu

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

func (k *kernels) Momentum(p, g, v engine.View, keep, rate float32) {
	to, from, velocity := flat[float32](p), flat[float32](g), flat[float32](v)
	if k.pieces(len(to), 1) == 1 { // most parameters: nothing is prepared for several threads
		vec.Momentum(to, from, velocity, keep, rate)
		return
	}
	k.split(len(to), 1, func(i, j int) { vec.Momentum(to[i:j], from[i:j], velocity[i:j], keep, rate) })
}

func (k *kernels) Adam(p, g, m, v engine.View, s engine.AdamFactors) {
	to, from, mean, square := flat[float32](p), flat[float32](g), flat[float32](m), flat[float32](v)
	if k.pieces(len(to), 2) == 1 {
		vec.Adam(to, from, mean, square, vec.AdamStep(s))
		return
	}
	k.split(len(to), 2, func(i, j int) { vec.Adam(to[i:j], from[i:j], mean[i:j], square[i:j], vec.AdamStep(s)) })
}
