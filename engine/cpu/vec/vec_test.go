package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

var nan, inf, tiny = float32(math.NaN()), float32(math.Inf(1)), float32(math.SmallestNonzeroFloat32)

// functions are those of one operand, as they are chosen for this processor and
// in Go.
var functions = []struct {
	name           string
	fast, portable func(dst, x []float32)
	exact          func(x float64) float64
	ulps           float64 // what the documentation allows
}{
	{"Exp", Exp, expPortable, math.Exp, 1.1},
	{"Tanh", Tanh, tanhPortable, math.Tanh, 2.5},
	{"Sigmoid", Sigmoid, sigmoidPortable, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.5},
}

// ulpsOff is how far got is from want, in units of float32's last place there.
// Infinity is taken for the number after the largest.
func ulpsOff(got float32, want float64) float64 {
	if math.IsNaN(want) && got != got {
		return 0
	}
	const above = 0x1p128
	g, w := max(-above, min(above, float64(got))), max(-above, min(above, want))
	_, e := math.Frexp(w)
	off := math.Abs(g-w) / math.Ldexp(1, max(min(e, 128)-24, -149))
	if off != off {
		return math.Inf(1)
	}
	return off
}

// every is the step between the float32 that are tried. All of them, with 1, are
// four billion and take minutes: 1.077 for Exp, 2.456 for Tanh, 2.402 for Sigmoid.
const every = 1021

func TestFunctionsAreAsExactAsTheyPromise(t *testing.T) {
	heavytest.Sequential(t, "it starts no goroutine")
	x, got := make([]float32, 4096), make([]float32, 4096)
	for _, f := range functions {
		for name, compute := range map[string]func(dst, x []float32){"as chosen": f.fast, "portable": f.portable} {
			t.Run(f.name+" "+name, func(t *testing.T) {
				worst, where := 0.0, float32(0)
				for bits := uint64(0); bits < 1<<32; {
					n := 0
					for ; n < len(x) && bits < 1<<32; n++ {
						x[n] = math.Float32frombits(uint32(bits))
						bits += every
					}
					compute(got[:n], x[:n])
					for i, v := range x[:n] {
						if off := ulpsOff(got[i], f.exact(float64(v))); off > worst {
							worst, where = off, v
						}
					}
				}
				t.Logf("off by %.3f at most, at %g", worst, where)
				if worst > f.ulps {
					t.Errorf("off by %.3f units in the last place at %g", worst, where)
				}
			})
		}
	}
}

func TestFunctionsOfSpecialNumbers(t *testing.T) {
	zero, negative := float32(0), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name          string
		compute       func(dst, x []float32)
		x, want, slop float32
	}{
		{"e to the 0 is 1", Exp, 0, 1, 0},
		{"e to the -0 is 1", Exp, negative, 1, 0},
		{"e to the infinity is infinite", Exp, inf, inf, 0},
		{"e to minus infinity is 0", Exp, -inf, 0, 0},
		{"e to NaN is NaN", Exp, nan, nan, 0},
		{"the largest exponent is finite", Exp, 88.72283, 3.4027984e38, 1e32},
		{"the next is infinite", Exp, 88.72284, inf, 0},
		{"a result may be subnormal", Exp, -100, 3.783506e-44, tiny},
		{"the least result", Exp, -103.9, tiny, 0},
		{"below it comes 0", Exp, -104.1, 0, 0},
		{"tanh keeps the sign of 0", Tanh, negative, negative, 0},
		{"tanh of 0 is 0", Tanh, zero, zero, 0},
		{"tanh of little is itself", Tanh, 1e-30, 1e-30, 0},
		{"tanh of subnormals is itself", Tanh, -tiny, -tiny, 0},
		{"tanh of infinity is 1", Tanh, inf, 1, 0},
		{"tanh of minus infinity is -1", Tanh, -inf, -1, 0},
		{"tanh of NaN is NaN", Tanh, nan, nan, 0},
		{"sigmoid of 0 is a half", Sigmoid, 0, 0.5, 0},
		{"sigmoid of -0 is a half", Sigmoid, negative, 0.5, 0},
		{"sigmoid of infinity is 1", Sigmoid, inf, 1, 0},
		{"sigmoid of minus infinity is 0", Sigmoid, -inf, 0, 0},
		{"sigmoid may be subnormal", Sigmoid, -100, 3.783506e-44, tiny},
		{"sigmoid of NaN is NaN", Sigmoid, nan, nan, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := []float32{0}
			c.compute(got, []float32{c.x})
			equal := math.Float32bits(got[0]) == math.Float32bits(c.want) || c.want != c.want && got[0] != got[0]
			if near := float32(math.Abs(float64(got[0]-c.want))) <= c.slop; !equal && !(c.slop > 0 && near) {
				t.Errorf("%g, want %g", got[0], c.want)
			}
		})
	}
}

// guarded is a slice with canaries around it, somewhere in memory.
type guarded struct {
	all []float32
	v   []float32
}

const canary = 12345

func newGuarded(r *rand.Rand, n int) guarded {
	g := guarded{all: slices.Repeat([]float32{canary}, n+20)}
	first := 1 + r.IntN(9)
	g.v = g.all[first:][:n:n]
	for i := range g.v {
		g.v[i] = 4*r.Float32() - 2
	}
	return g
}

func (g guarded) clone() []float32 { return slices.Clone(g.v) }

// touched reports whether anything outside the slice was written.
func (g guarded) touched() bool {
	strange := 0
	for _, v := range g.all {
		if v != canary {
			strange++
		}
	}
	return strange > len(g.v)
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestVectorsComputeWhatThePortableLoopsCompute(t *testing.T) {
	step := AdamStep{KeepMean: 0.9, TakeMean: 0.1, KeepSquare: 0.999, TakeSquare: 0.001, Keep: 0.99, Move: 0.01, Root: 1.5, Epsilon: 1e-8}
	for _, c := range []struct {
		name           string
		fast, portable func(a, b, c, d []float32)
	}{
		{"Add", func(a, b, c, _ []float32) { Add(a, b, c) }, func(a, b, c, _ []float32) { addPortable(a, b, c) }},
		{"Add in place", func(a, b, _, _ []float32) { Add(a, a, b) }, func(a, b, _, _ []float32) { addPortable(a, a, b) }},
		{"Mul", func(a, b, c, _ []float32) { Mul(a, b, c) }, func(a, b, c, _ []float32) { mulPortable(a, b, c) }},
		{"Scale", func(a, b, _, _ []float32) { Scale(a, b, -0.3) }, func(a, b, _, _ []float32) { scalePortable(a, b, -0.3) }},
		{"Affine in place", func(a, _, _, _ []float32) { Affine(a, a, 1.3, -0.3) }, func(a, _, _, _ []float32) { affinePortable(a, a, 1.3, -0.3) }},
		{"Blend", func(a, b, c, _ []float32) { Blend(a, b, c, 1.3, -0.3, 0.7) }, func(a, b, c, _ []float32) { blendPortable(a, b, c, 1.3, -0.3, 0.7) }},
		{"AddProduct", func(a, b, c, _ []float32) { AddProduct(a, b, c) }, func(a, b, c, _ []float32) { addProductPortable(a, b, c) }},
		{"Rectify", func(a, b, _, _ []float32) { Rectify(a, b) }, func(a, b, _, _ []float32) { rectifyPortable(a, b) }},
		{"Gate", func(a, b, c, _ []float32) { Gate(a, b, c) }, func(a, b, c, _ []float32) { gatePortable(a, b, c) }},
		{"Momentum", func(a, b, c, _ []float32) { Momentum(a, b, c, 0.9, 0.1) }, func(a, b, c, _ []float32) { momentumPortable(a, b, c, 0.9, 0.1) }},
		{"Adam", func(a, b, c, d []float32) { Adam(a, b, c, d, step) }, func(a, b, c, d []float32) { adamPortable(a, b, c, d, step) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(0, 70).Draw(t, "n")
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				var got [4]guarded
				var want [4][]float32
				for i := range got {
					got[i] = newGuarded(r, n)
					if i == 3 { // a mean square is not negative
						Mul(got[i].v, got[i].v, got[i].v)
					}
					want[i] = got[i].clone()
				}
				c.fast(got[0].v, got[1].v, got[2].v, got[3].v)
				c.portable(want[0], want[1], want[2], want[3])
				for i := range got {
					if !sameBits(got[i].v, want[i]) {
						t.Fatalf("operand %d is %v, want %v", i, got[i].v, want[i])
					}
					if got[i].touched() {
						t.Fatalf("operand %d of %d elements: written around it", i, n)
					}
				}
			})
		})
	}
}

func TestFunctionsOfEveryLengthAndInPlace(t *testing.T) {
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for n := range 40 {
				x := newGuarded(r, n)
				want := make([]float32, n)
				for i, v := range x.v { // an element is the same wherever it stands
					f.fast(want[i:i+1], []float32{v})
				}
				dst := newGuarded(r, n)
				f.fast(dst.v, x.v)
				f.fast(x.v, x.v)
				if !sameBits(dst.v, want) || !sameBits(x.v, want) {
					t.Errorf("%d elements: %v, in place %v, want %v", n, dst.v, x.v, want)
				}
				if dst.touched() || x.touched() {
					t.Errorf("%d elements: written around them", n)
				}
			}
		})
	}
}

func TestSumIsAsExactAsItPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 31, 32, 33, 40, 63, 100, 1023, 1024, 1025, 100_000} {
		for name, add := range map[string]func([]float32) float32{"Sum": Sum, "sumPortable": sumPortable} {
			if name == "sumPortable" && n > sumBlock {
				continue
			}
			x := newGuarded(r, n).v
			want, magnitude := 0.0, 0.0
			for _, v := range x {
				want += float64(v)
				magnitude += math.Abs(float64(v))
			}
			if got := add(x); math.Abs(float64(got)-want) > 0x1p-16*magnitude {
				t.Errorf("%s of %d: %g, want %g", name, n, got, want)
			}
		}
	}
	if got := Sum([]float32{1, inf, 2}); got != inf {
		t.Errorf("with infinity: %g", got)
	}
	if got := Sum([]float32{inf, 1, -inf}); got == got {
		t.Errorf("infinity less infinity: %g", got)
	}
}

func TestSumsOfProductsAreAsExactAsTheyPromise(t *testing.T) {
	const off = 0.7
	folds := []struct {
		name           string
		fast, portable func(x, y []float32) float32
		term           func(x, y float64) float64
	}{
		{"Dot", func(x, y []float32) float32 { return Dot(x, y, off) }, func(x, y []float32) float32 { return dotPortable(x, y, off) },
			func(x, y float64) float64 { return x * (y - float64(float32(off))) }},
		{"Squares", func(x, _ []float32) float32 { return Squares(x, off) }, func(x, _ []float32) float32 { return squaresPortable(x, off) },
			func(x, _ float64) float64 { return (x - float64(float32(off))) * (x - float64(float32(off))) }},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range folds {
		for _, n := range []int{0, 1, 2, 7, 8, 9, 31, 32, 33, 40, 63, 100, 1023, 1025, 100_000} {
			x, y := newGuarded(r, n).v, newGuarded(r, n).v
			want, magnitude := 0.0, 0.0
			for i := range x {
				term := f.term(float64(x[i]), float64(y[i]))
				want += term
				magnitude += math.Abs(term)
			}
			for name, add := range map[string]func(x, y []float32) float32{"as chosen": f.fast, "portable": f.portable} {
				if name == "portable" && n > sumBlock {
					continue
				}
				if got := add(x, y); math.Abs(float64(got)-want) > 0x1p-16*magnitude {
					t.Errorf("%s %s of %d: %g, want %g", f.name, name, n, got, want)
				}
			}
		}
	}
}

func TestRectifyAndGateOfSpecialNumbers(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	x := []float32{nan, inf, -inf, 0, negative, tiny, -tiny, 1}
	got := make([]float32, len(x))
	Rectify(got, x)
	if want := []float32{nan, inf, 0, 0, negative, tiny, 0, 1}; !sameBits(got, want) {
		t.Errorf("Rectify(%v) is %v, want %v", x, got, want)
	}
	Gate(got, []float32{1, 2, 3, 4, 5, nan, 7, inf}, x)
	if want := []float32{1, 2, 0, 0, 0, nan, 0, inf}; !sameBits(got, want) {
		t.Errorf("Gate by %v is %v, want %v", x, got, want)
	}
}

func TestTilesComputeWhatThePortableLoopsCompute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a, b, g := newGuarded(r, 2*n), newGuarded(r, 2*n), newGuarded(r, n)
		for i := range 2 * n { // few values, so that there are equals
			a.v[i], b.v[i] = float32(math.Round(float64(a.v[i]))), float32(math.Round(float64(b.v[i])))
		}
		largest, da, db := newGuarded(r, n), newGuarded(r, 2*n), newGuarded(r, 2*n)
		MaxTiles(largest.v, a.v, b.v)
		MaxTilesGrad(da.v, db.v, g.v, a.v, b.v)
		want, wantA, wantB := make([]float32, n), make([]float32, 2*n), make([]float32, 2*n)
		maxTilesPortable(want, a.v, b.v)
		maxTilesGradPortable(wantA, wantB, g.v, a.v, b.v)
		if !slices.Equal(largest.v, want) { // zeros may differ in sign
			t.Fatalf("largest %v, want %v", largest.v, want)
		}
		if !slices.Equal(da.v, wantA) || !slices.Equal(db.v, wantB) {
			t.Fatalf("of %v and %v, gradients %v and %v, want %v and %v", a.v, b.v, da.v, db.v, wantA, wantB)
		}
		if largest.touched() || da.touched() || db.touched() {
			t.Fatal("written around the results")
		}
	})
}

func TestMaxTilesKeepsNaN(t *testing.T) {
	for at := range 40 {
		rows := make([]float32, 40)
		rows[at] = nan
		got := make([]float32, 10)
		MaxTiles(got, rows[:20], rows[20:])
		for i, v := range got {
			if (v != v) != (i == at%20/2) {
				t.Errorf("with NaN at %d: %v", at, got)
				break
			}
		}
	}
}

func TestATileWithNaNHasGradientsOfNaN(t *testing.T) {
	for at := range 40 {
		rows, da, db := make([]float32, 40), make([]float32, 20), make([]float32, 20)
		rows[at] = nan
		MaxTilesGrad(da, db, make([]float32, 10), rows[:20], rows[20:])
		for i := range 20 {
			if inTile := i/2 == at%20/2; (da[i] != da[i]) != inTile || (db[i] != db[i]) != inTile {
				t.Fatalf("with NaN at %d: %v and %v", at, da, db)
			}
		}
	}
}

func TestTilesShareAmongEquals(t *testing.T) {
	for _, c := range []struct {
		name         string
		a, b, da, db []float32
	}{
		{"one is the largest", []float32{1, 2}, []float32{0, 1}, []float32{0, 12}, []float32{0, 0}},
		{"equals in a column share", []float32{3, 2}, []float32{3, 1}, []float32{6, 0}, []float32{6, 0}},
		{"equal columns share", []float32{3, 0}, []float32{1, 3}, []float32{6, 0}, []float32{0, 6}},
		{"columns first, then their elements", []float32{3, 3}, []float32{3, 1}, []float32{3, 6}, []float32{3, 0}},
		{"four equals", []float32{-1, -1}, []float32{-1, -1}, []float32{3, 3}, []float32{3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			da, db := make([]float32, 8), make([]float32, 8)
			MaxTilesGrad(da, db, []float32{12, 12, 12, 12}, slices.Repeat(c.a, 4), slices.Repeat(c.b, 4))
			if !slices.Equal(da, slices.Repeat(c.da, 4)) || !slices.Equal(db, slices.Repeat(c.db, 4)) {
				t.Errorf("gradients %v and %v, want %v and %v in each tile", da, db, c.da, c.db)
			}
		})
	}
}

func TestMaxIsTheLargestAndKeepsNaN(t *testing.T) {
	if got := Max(nil); got != -inf {
		t.Errorf("of nothing: %g", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 80; n++ {
		x := newGuarded(r, n).v
		for i := range x {
			x[i] -= 10 // a 0 that does not belong would be the largest
		}
		for at := range x {
			for _, v := range []float32{-1, inf, nan, -inf} {
				old := x[at]
				x[at] = v
				got, want := Max(x), slices.Max(x)
				if v != v {
					want = nan
				}
				if got != want && (got == got || want == want) {
					t.Errorf("of %d with %g at %d: %g, want %g", n, v, at, got, want)
				}
				if p := maxPortable(x); p != want && (p == p || want == want) {
					t.Errorf("portable, of %d with %g at %d: %g, want %g", n, v, at, p, want)
				}
				x[at] = old
			}
		}
	}
}

func TestAdamStepFollowsThePaper(t *testing.T) {
	const beta1, beta2, rate, decay, epsilon = 0.9, 0.999, 0.01, 0.1, 1e-8
	p, m, v := []float32{1, -2, 3}, make([]float32, 3), make([]float32, 3)
	want, mean, square := []float64{1, -2, 3}, make([]float64, 3), make([]float64, 3)
	for t1 := 1; t1 <= 5; t1++ {
		g := []float32{0.5 * float32(t1), -1, 0.01}
		c1, c2 := 1-math.Pow(beta1, float64(t1)), 1-math.Pow(beta2, float64(t1))
		Adam(p, g, m, v, AdamStep{
			KeepMean: beta1, TakeMean: 1 - beta1, KeepSquare: beta2, TakeSquare: 1 - beta2,
			Keep: 1 - rate*decay, Move: float32(rate / c1), Root: float32(1 / math.Sqrt(c2)), Epsilon: epsilon,
		})
		for i := range want {
			mean[i] = beta1*mean[i] + (1-beta1)*float64(g[i])
			square[i] = beta2*square[i] + (1-beta2)*float64(g[i])*float64(g[i])
			want[i] -= rate * decay * want[i]
			want[i] -= rate * (mean[i] / c1) / (math.Sqrt(square[i]/c2) + epsilon)
		}
	}
	for i := range want {
		if math.Abs(float64(p[i])-want[i]) > 1e-6 {
			t.Errorf("parameter %d is %g, want %g", i, p[i], want[i])
		}
	}
}

func TestLengthsMustAgree(t *testing.T) {
	two, three := make([]float32, 2), make([]float32, 3)
	for name, call := range map[string]func(){
		"Exp":      func() { Exp(two, three) },
		"Add":      func() { Add(two, two, three) },
		"Blend":    func() { Blend(two, two, three, 1, 1, 1) },
		"MaxTiles": func() { MaxTiles(two, three, three) },
		"Dot":      func() { Dot(two, three, 0) },
		"Momentum": func() { Momentum(two, two, three, 0, 0) },
		"Adam":     func() { Adam(two, two, two, three, AdamStep{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); got != "vec: slices of different lengths" {
					t.Errorf("panicked with %q", got)
				}
			}()
			call()
		})
	}
}

func TestNothingIsAllocated(t *testing.T) {
	x, y, z, w := make([]float32, 100), make([]float32, 100), make([]float32, 100), make([]float32, 100)
	if n := testing.AllocsPerRun(10, func() {
		Exp(x, y)
		Tanh(x, y)
		Sigmoid(x, y)
		Add(x, y, z)
		Mul(x, y, z)
		Scale(x, y, 2)
		Affine(x, y, 2, 1)
		Blend(x, y, z, 2, 1, 3)
		AddProduct(x, y, z)
		Rectify(x, y)
		Gate(x, y, z)
		Dot(x, y, 1)
		MaxTiles(x[:50], y, z)
		MaxTilesGrad(x, y, z[:50], w, w)
		Squares(x, 1)
		Momentum(x, y, z, 0.9, 0.1)
		Adam(x, y, z, w, AdamStep{})
		Sum(x)
		Max(x)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
