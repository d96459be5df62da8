package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkLoops reports what each function reads and writes a second, over
// slices that fit the second cache and over slices that do not.
func BenchmarkLoops(b *testing.B) {
	step := AdamStep{KeepMean: 0.9, TakeMean: 0.1, KeepSquare: 0.999, TakeSquare: 0.001, Keep: 1, Move: 0.01, Root: 1, Epsilon: 1e-8}
	for _, f := range []struct {
		name           string
		streams        int // read or written
		fast, portable func(a, b, c, d []float32)
	}{
		{"Exp", 2, func(a, b, _, _ []float32) { Exp(a, b) }, func(a, b, _, _ []float32) { expPortable(a, b) }},
		{"Tanh", 2, func(a, b, _, _ []float32) { Tanh(a, b) }, func(a, b, _, _ []float32) { tanhPortable(a, b) }},
		{"Sigmoid", 2, func(a, b, _, _ []float32) { Sigmoid(a, b) }, func(a, b, _, _ []float32) { sigmoidPortable(a, b) }},
		{"Add", 3, func(a, b, c, _ []float32) { Add(a, b, c) }, func(a, b, c, _ []float32) { addPortable(a, b, c) }},
		{"Mul", 3, func(a, b, c, _ []float32) { Mul(a, b, c) }, func(a, b, c, _ []float32) { mulPortable(a, b, c) }},
		{"Affine", 2, func(a, b, _, _ []float32) { Affine(a, b, 1e-3, 1) }, func(a, b, _, _ []float32) { affinePortable(a, b, 1e-3, 1) }},
		{"Blend", 3, func(a, b, c, _ []float32) { Blend(a, b, c, 1e-3, 1, 1) }, func(a, b, c, _ []float32) { blendPortable(a, b, c, 1e-3, 1, 1) }},
		{"Gate", 3, func(a, b, c, _ []float32) { Gate(a, b, c) }, func(a, b, c, _ []float32) { gatePortable(a, b, c) }},
		{"Dot", 2, func(a, b, _, _ []float32) { Dot(a, b, 0.5) }, func(a, b, _, _ []float32) { dotPortable(a, b, 0.5) }},
		{"Squares", 1, func(a, _, _, _ []float32) { Squares(a, 0.5) }, func(a, _, _, _ []float32) { squaresPortable(a, 0.5) }},
		{"Sum", 1, func(a, _, _, _ []float32) { Sum(a) }, func(a, _, _, _ []float32) { sumPortable(a) }},
		{"Max", 1, func(a, _, _, _ []float32) { Max(a) }, func(a, _, _, _ []float32) { maxPortable(a) }},
		{"Momentum", 5, func(a, b, c, _ []float32) { Momentum(a, b, c, 0.9, 1e-3) }, func(a, b, c, _ []float32) { momentumPortable(a, b, c, 0.9, 1e-3) }},
		{"Adam", 7, func(a, b, c, d []float32) { Adam(a, b, c, d, step) }, func(a, b, c, d []float32) { adamPortable(a, b, c, d, step) }},
	} {
		for _, n := range []int{1 << 13, 1 << 21} {
			for _, way := range []struct {
				name string
				f    func(a, b, c, d []float32)
			}{{"chosen", f.fast}, {"portable", f.portable}} {
				b.Run(fmt.Sprintf("%s/%d/%s", f.name, n, way.name), func(b *testing.B) {
					r := rand.New(rand.NewPCG(1, 2))
					var operands [4][]float32
					for i := range operands {
						operands[i] = make([]float32, n)
						for j := range operands[i] {
							operands[i][j] = r.Float32()
						}
					}
					b.SetBytes(int64(4 * f.streams * n))
					b.ReportAllocs()
					for b.Loop() {
						way.f(operands[0], operands[1], operands[2], operands[3])
					}
				})
			}
		}
	}
}
