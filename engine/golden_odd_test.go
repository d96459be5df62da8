package engine_test

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// oddLoss is a loss of one operand against numbers.
func oddLoss(f func(o engine.Ops, a, b *engine.Tensor, r engine.Reduction) *engine.Tensor, against ...float32) goldenCase {
	return of("", func(o engine.Ops, in list) *engine.Tensor {
		return f(o, in[0], o.FromFloats(against, in[0].Shape().Slice()...), engine.Each)
	})
}

// crossEntropy is unweighted.
var crossEntropy = of("", func(o engine.Ops, in list) *engine.Tensor { return engine.CrossEntropy(o, in[0], in[1], nil) })

// oddCases compute what golden.py computes of NaN and infinities.
var oddCases = map[string]goldenCase{
	"relu of odd numbers":                   unary("", engine.Ops.ReLU),
	"max of odd numbers":                    binary("", engine.Ops.Max),
	"max over an axis of odd numbers":       of("", func(o engine.Ops, in list) *engine.Tensor { return o.MaxOver(in[0], 1) }),
	"max over an outer axis of odd numbers": of("", func(o engine.Ops, in list) *engine.Tensor { return o.MaxOver(in[0], 0) }),
	"argmax of odd numbers":                 of("", func(o engine.Ops, in list) *engine.Tensor { return o.ArgMax(in[0], 1) }),
	"less with odd numbers":                 binary("", engine.Ops.Less),
	"equal with odd numbers":                binary("", engine.Ops.Equal),
	"max pool of tiles of odd numbers": of("", func(o engine.Ops, in list) *engine.Tensor {
		return engine.MaxPool2d(o, in[0], engine.Square(2, 2, 0))
	}),
	"max pool of overlapping windows of odd numbers": of("", func(o engine.Ops, in list) *engine.Tensor {
		return engine.MaxPool2d(o, in[0], engine.Square(2, 1, 0))
	}),
	"log-softmax of odd numbers":                      unary("", engine.Ops.LogSoftmax),
	"cross entropy beside classes that are ruled out": crossEntropy,
	"cross entropy of a class that is ruled out":      crossEntropy,
	"cross entropy with NaN":                          crossEntropy,
	"cross entropy with an infinite logit":            crossEntropy,
	"cross entropy with a ruled out class":            crossEntropy,
	"cross entropy with no class left":                crossEntropy,
	"mean squared error of odd numbers":               oddLoss(engine.MSE, 0, 0, 0, 0, 0, 0),
	"l1 of odd numbers":                               oddLoss(engine.L1, 0, 0, 0, 0, 0, 0),
}

// TestOddNumbersGoAsInPyTorch holds what compares and what takes logarithms against
// PyTorch on NaN and infinities, with the fused kernels and composed of primitives.
func TestOddNumbersGoAsInPyTorch(t *testing.T) {
	odd := readGolden(t).Odd
	for _, c := range odd {
		compute, ok := oddCases[c.Name]
		if !ok {
			t.Errorf("golden.json has the case %q, which the test does not compute", c.Name)
		}
		t.Run(c.Name, func(t *testing.T) {
			for _, k := range []engine.Kernels{cpu.New(1), cpu.Reference()} {
				d := mem.NewDevice(mem.Host(), mem.Options{})
				c.hold(t, engine.NewEager(k, d), compute)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for name := range oddCases {
		if !slices.ContainsFunc(odd, func(c goldenNumbers) bool { return c.Name == name }) {
			t.Errorf("golden.json lacks the case %q; run testdata/golden.py", name)
		}
	}
}
