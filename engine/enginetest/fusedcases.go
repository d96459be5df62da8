package enginetest

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
)

// size draws an extent from 1 on.
func size(rng *rand.Rand, most int) int { return 1 + rng.IntN(most) }

// rowsShape draws [… d], with enough rows in the first round for several threads,
// and none in the second.
func rowsShape(rng *rand.Rand, round int) engine.Shape {
	if round == 0 {
		return engine.ShapeOf(3, 100+rng.IntN(40), 90+rng.IntN(20))
	}
	s := engine.ShapeOf(size(rng, 5), size(rng, 7), size(rng, 40))
	if round == 1 {
		return s.With(1, 0)
	}
	if rng.IntN(3) == 0 {
		return engine.ShapeOf(s.Dims[1], s.Dims[2])
	}
	return s
}

func fusedCases() []fusedCase {
	return []fusedCase{
		{"relu", 15, true, func(rng *rand.Rand, round int) *problem {
			return &problem{f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor { return o.ReLU(o.Mul(in[0], in[0])) }), shapes: []engine.Shape{rowsShape(rng, round)}, odd: round%3 == 2}
		}},
		{"log-softmax", 15, true, func(rng *rand.Rand, round int) *problem {
			s := rowsShape(rng, round)
			return &problem{f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor { return o.LogSoftmax(in[0]) }), shapes: []engine.Shape{s}, odd: round%3 == 2, terms: s.Elements()}
		}},
		{"cross entropy", 15, true, func(rng *rand.Rand, round int) *problem {
			m, classes := size(rng, 12), size(rng, 40)
			if round == 0 {
				m, classes = 300, 200
			}
			p := &problem{f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor {
				return engine.CrossEntropy(o, in[0], in[1], nil)
			}), shapes: []engine.Shape{engine.ShapeOf(m, classes)}, odd: round%3 > 0, terms: classes}
			for range m {
				p.labels = append(p.labels, int32(rng.IntN(classes)))
			}
			return p
		}},
		{"layer norm", 24, true, func(rng *rand.Rand, round int) *problem {
			s := rowsShape(rng, round)
			s = s.With(s.Rank-1, 4+s.Dims[s.Rank-1]) // of two elements the variance may be next to 0
			d := engine.ShapeOf(s.Dims[s.Rank-1])
			return &problem{f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor {
				return engine.LayerNorm(o, in[0], in[1], in[2], 0.1)
			}), shapes: []engine.Shape{s, d, d}, odd: round%4 == 3, terms: s.Elements()}
		}},
		{"batch norm", 24, true, func(rng *rand.Rand, round int) *problem {
			n, c, h, w := 1+size(rng, 4), size(rng, 6), 1+size(rng, 5), size(rng, 9)
			if round == 0 {
				n, c, h, w = 5, 7, 60, 61
			}
			return &problem{f: func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor {
				out, mean, variance := engine.BatchNormTraining(o, in[0], in[1], in[2], 0.1)
				return []*engine.Tensor{out, mean, variance}
			}, shapes: []engine.Shape{engine.ShapeOf(n, c, h, w), engine.ShapeOf(c), engine.ShapeOf(c)}, odd: round%4 == 3, terms: n * c * h * w}
		}},
		{"max pool, with equals", 24, true, func(rng *rand.Rand, round int) *problem {
			w := engine.Window{Kernel: [2]int{size(rng, 4), size(rng, 4)}}
			if round%2 == 0 {
				w.Kernel = [2]int{2, 2}
			}
			w.Stride = w.Kernel
			s := engine.ShapeOf(size(rng, 3), size(rng, 4), w.Kernel[0]*size(rng, 5), w.Kernel[1]*size(rng, 20))
			if round == 0 {
				s = engine.ShapeOf(5, 6, 80, 82)
			}
			return &problem{f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor { return engine.MaxPool2d(o, in[0], w) }), shapes: []engine.Shape{s}, whole: true, odd: round%4 > 1}
		}},
		{"convolution", 40, true, drawConvolution},
		{"attention", 30, true, drawAttention},
		{"momentum", 10, false, func(rng *rand.Rand, round int) *problem {
			s := rowsShape(rng, round)
			return &problem{f: stepped(func(o engine.Ops, in []*engine.Tensor) { engine.Momentum(o, in[0], in[1], in[2], 0.9, 0.1) }), shapes: []engine.Shape{s, s, s}}
		}},
		{"adam", 10, false, func(rng *rand.Rand, round int) *problem {
			s := rowsShape(rng, round)
			f := engine.AdamFactors{KeepMean: 0.9, TakeMean: 0.1, KeepSquare: 0.99, TakeSquare: 0.01, Keep: 1 - 0.1*float32(round%2), Move: 0.02, Root: 1.5, Epsilon: 1e-3}
			return &problem{f: stepped(func(o engine.Ops, in []*engine.Tensor) { engine.Adam(o, in[0], in[1], in[2], in[3], f) }), shapes: []engine.Shape{s, s, s, s}}
		}},
	}
}

// drawConvolution draws windows of all kinds; every other keeps the width, and two
// rounds are large: of several tiles, and of several groups of images.
func drawConvolution(rng *rand.Rand, round int) *problem {
	w := engine.Window{
		Kernel: [2]int{size(rng, 4), size(rng, 4)},
		Stride: [2]int{size(rng, 3), size(rng, 3)},
		Pad:    [2]int{rng.IntN(4), rng.IntN(4)},
	}
	if round%2 == 0 {
		w = engine.Window{Kernel: [2]int{size(rng, 4), 1 + 2*rng.IntN(3)}, Stride: [2]int{1, 1}, Pad: [2]int{rng.IntN(4), 0}}
		w.Pad[1] = w.Kernel[1] / 2
	}
	n, c, out, h, wd := size(rng, 3), size(rng, 4), size(rng, 5), 4+rng.IntN(9), 4+rng.IntN(9)
	switch round {
	case 0: // two tiles of even rows
		w = engine.Square(3, 1, 1)
		n, c, out, h, wd = 1, 30, 2, 20, 20
	case 1: // two tiles of others
		w = engine.Square(3, 2, 1)
		n, c, out, h, wd = 2, 40, 2, 37, 39
	case 2:
		n, c, out, h, wd = 21, 2, 3, 9, 8
	case 3: // the kernel's first column sees the image nowhere
		w = engine.Window{Kernel: [2]int{1, 2}, Stride: [2]int{1, 3}, Pad: [2]int{0, 1}}
		wd = 1
	case 4:
		n = 0
	}
	biased := rng.IntN(2) == 0
	p := &problem{
		f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor {
			if biased {
				return engine.Convolve(o, in[0], in[1], in[2], w)
			}
			return o.Conv2d(in[0], in[1], w)
		}),
		shapes: []engine.Shape{engine.ShapeOf(n, c, h, wd), engine.ShapeOf(out, c, w.Kernel[0], w.Kernel[1])},
		odd:    round%5 == 4,
	}
	if biased {
		p.shapes = append(p.shapes, engine.ShapeOf(out))
	}
	oh, ow := w.Out(h, wd)
	p.terms = max(c*w.Kernel[0]*w.Kernel[1], n*oh*ow)
	return p
}

func drawAttention(rng *rand.Rand, round int) *problem {
	n, h, t, d, e := size(rng, 3), size(rng, 3), size(rng, 9), size(rng, 6), size(rng, 6)
	s := t + rng.IntN(4)
	causal := round%2 == 0
	switch {
	case round < 2: // more products than are made at a time
		n, h, t, s, d, e = 1, 2, 260, 270, 3, 4
	case !causal:
		s = size(rng, 9)
	}
	return &problem{
		f: single(func(o engine.Ops, in []*engine.Tensor) *engine.Tensor {
			return engine.Attention(o, in[0], in[1], in[2], 0.7, causal)
		}),
		shapes: []engine.Shape{engine.ShapeOf(n, h, t, d), engine.ShapeOf(n, h, s, d), engine.ShapeOf(n, h, s, e)},
		odd:    !causal && round%4 == 3,
		terms:  s,
	}
}
