package engine

import "math/bits"

// Random hands out draws: streams of uniform numbers that depend on the seed
// and on how many draws came before, never on the device or on timing.
type Random struct {
	seed  uint64
	draws uint64
}

// NewRandom returns the source with this seed.
func NewRandom(seed uint64) *Random { return &Random{seed: seed} }

// Draw returns the next stream. It panics with an *Error if there is no Random,
// as in a layer that was made without one.
func (r *Random) Draw() Draw {
	if r == nil {
		panic(&Error{Op: "draw", Reason: "the Random is nil; NewRandom makes one"})
	}
	r.draws++
	return Draw{Key: r.seed, Stream: r.draws}
}

// Draws counts the draws so far, for Seek.
func (r *Random) Draws() uint64 { return r.draws }

// Seek makes the next draw the one after so many, as in a run that is continued.
func (r *Random) Seek(draws uint64) { r.draws = draws }

// Draw names one stream of uniform numbers.
type Draw struct {
	Key, Stream uint64
}

// DrawFloat returns element i of a draw, in [0,1) with 24 bits: one word of
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011). It is a function of a counter, so devices need no state, and it uses
// 32-bit words, which shaders have.
func DrawFloat(d Draw, i int) float32 {
	return float32(philox(d, uint64(i)/4)[i%4]>>8) * (1.0 / (1 << 24))
}

func philox(d Draw, block uint64) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57
		w0, w1 = 0x9E3779B9, 0xBB67AE85
		rounds = 10
	)
	c := [4]uint32{uint32(block), uint32(block >> 32), uint32(d.Stream), uint32(d.Stream >> 32)}
	k0, k1 := uint32(d.Key), uint32(d.Key>>32)
	for range rounds {
		hi0, lo0 := bits.Mul32(m0, c[0])
		hi1, lo1 := bits.Mul32(m1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += w0
		k1 += w1
	}
	return c
}
