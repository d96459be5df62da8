package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// fig is a product to compute, and what to hold it against.
type fig struct {
	count, m, n, k      int
	a, b                Operand
	aStep, bStep        int
	c                   []float32
	ldc, cStep          int
	accumulate          bool
	wantSum, wantAbsSum []float64 // of each element of c, 0 between them
}

// reference computes the product in float64, by the definition.
func (f *fig) reference() {
	f.wantSum, f.wantAbsSum = make([]float64, len(f.c)), make([]float64, len(f.c))
	for q := range f.count {
		for i := range f.m {
			for j := range f.n {
				at := q*f.cStep + i*f.ldc + j
				if f.accumulate {
					f.wantSum[at], f.wantAbsSum[at] = float64(f.c[at]), math.Abs(float64(f.c[at]))
				}
				for p := range f.k {
					term := float64(f.a.Data[q*f.aStep+i*f.a.RowStride+p*f.a.ColStride]) * float64(f.b.Data[q*f.bStep+p*f.b.RowStride+j*f.b.ColStride])
					f.wantSum[at] += term
					f.wantAbsSum[at] += math.Abs(term)
				}
			}
		}
	}
}

func (f *fig) multiply(p *Pool) {
	p.MultiplyBatch(f.count, f.m, f.n, f.k, f.a, f.aStep, f.b, f.bStep, f.c, f.ldc, f.cStep, f.accumulate)
}

// fault compares c with the reference. The tolerance is the error of a sum of k
// products in any order: k+2 roundings of at most half a unit in the last place
// of the sum of magnitudes.
func (f *fig) fault() string {
	inside := make([]bool, len(f.c))
	for q := range f.count {
		for i := range f.m {
			for j := range f.n {
				at := q*f.cStep + i*f.ldc + j
				inside[at] = true
				tolerance := float64(f.k+2) * 0x1p-24 * f.wantAbsSum[at]
				if diff := math.Abs(float64(f.c[at]) - f.wantSum[at]); !(diff <= tolerance) {
					return fmt.Sprintf("product %d, element (%d, %d) = %g, want %g ± %g", q, i, j, f.c[at], f.wantSum[at], tolerance)
				}
			}
		}
	}
	for at, v := range f.c {
		if !inside[at] && v != canary {
			return fmt.Sprintf("wrote %g between the rows of C, at %d", v, at)
		}
	}
	return ""
}

func (f *fig) String() string {
	return fmt.Sprintf("%d of %d by %d by %d, strides A %d %d %d, B %d %d %d, C %d %d, accumulate %v", f.count, f.m, f.n, f.k,
		f.aStep, f.a.RowStride, f.a.ColStride, f.bStep, f.b.RowStride, f.b.ColStride, f.cStep, f.ldc, f.accumulate)
}

// canary lies where nothing may be written.
const canary = 12345

func numbers(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 2*r.Float32() - 1
	}
	return v
}

// extents are those where kernels change their ways, and any others.
func extents() *rapid.Generator[int] {
	return rapid.OneOf(
		rapid.IntRange(0, 9),
		rapid.SampledFrom([]int{13, 14, 15, 16, 17, 31, 32, 33, 63, 64, 65}),
		rapid.IntRange(10, 90),
		rapid.IntRange(250, 400),
	)
}

// drawFig draws a product whose operands are rows, columns or broadcasts, with
// gaps or without.
func drawFig(t *rapid.T) *fig {
	f := &fig{
		count: rapid.OneOf(rapid.Just(1), rapid.IntRange(0, 5)).Draw(t, "count"),
		m:     extents().Draw(t, "m"), n: extents().Draw(t, "n"), k: extents().Draw(t, "k"),
		accumulate: rapid.Bool().Draw(t, "accumulate"),
	}
	for f.count*f.m*f.n*f.k > 1<<19 {
		f.count, f.k = (f.count+1)/2, (f.k+1)/2
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	operand := func(name string, rows, cols int) (Operand, int) {
		gap := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, name+" gap")
		var o Operand
		switch rapid.SampledFrom([]string{"rows", "columns", "spread", "broadcast"}).Draw(t, name) {
		case "rows":
			o = Operand{RowStride: cols + gap, ColStride: 1}
		case "columns":
			o = Operand{RowStride: 1, ColStride: rows + gap}
		case "spread":
			o = Operand{RowStride: 2 * (cols + gap), ColStride: 2}
		case "broadcast":
			o = Operand{RowStride: rapid.IntRange(0, 1).Draw(t, name+" row"), ColStride: rapid.IntRange(0, 1).Draw(t, name+" col")}
		}
		each := max(0, (rows-1)*o.RowStride) + max(0, (cols-1)*o.ColStride) + 1
		step := rapid.SampledFrom([]int{0, each, each + gap}).Draw(t, name+" step")
		o.Data = numbers(r, max(0, f.count-1)*step+each)
		return o, step
	}
	f.a, f.aStep = operand("A", f.m, f.k)
	f.b, f.bStep = operand("B", f.k, f.n)
	f.ldc = f.n + rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "C gap")
	f.cStep = f.m*f.ldc + rapid.SampledFrom([]int{0, 2}).Draw(t, "C step gap")
	f.fill(r)
	return f
}

// fill gives c its canaries, and NaN wherever it may not be read.
func (f *fig) fill(r *rand.Rand) {
	f.c = slices.Repeat([]float32{canary}, f.count*f.cStep+f.ldc)
	for q := range f.count {
		for i := range f.m {
			for j := range f.n {
				v := float32(math.NaN())
				if f.accumulate {
					v = 2*r.Float32() - 1
				}
				f.c[q*f.cStep+i*f.ldc+j] = v
			}
		}
	}
	f.reference()
}

// eachKernel runs a test with every kernel that this processor has.
func eachKernel(t *testing.T, threads int, test func(t *testing.T, p *Pool)) {
	t.Helper()
	for _, kern := range kernels() {
		t.Run(kern.name, func(t *testing.T) {
			p := newPool(threads, kern)
			defer p.Close()
			test(t, p)
		})
	}
}

func TestProductIsThatOfTheDefinition(t *testing.T) {
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d threads", threads), func(t *testing.T) {
			eachKernel(t, threads, func(t *testing.T, p *Pool) {
				rapid.Check(t, func(t *rapid.T) {
					f := drawFig(t)
					f.multiply(p)
					if fault := f.fault(); fault != "" {
						t.Fatalf("%v: %s", f, fault)
					}
				})
			})
		})
	}
}

func TestShapesOfEveryRoute(t *testing.T) {
	heavytest.Sequential(t, "TestProductIsThatOfTheDefinition and TestPoolServesManyGoroutines share as well")
	row := func(rows, cols int) Operand { return Operand{RowStride: cols, ColStride: 1} }
	col := func(rows, _ int) Operand { return Operand{RowStride: 1, ColStride: rows} }
	for _, c := range []struct {
		name           string
		count, m, n, k int
		a, b           func(rows, cols int) Operand
	}{
		{"several slabs of k", 1, 30, 40, 1000, row, row},
		{"several blocks of columns and slabs", 1, 17, 1100, 400, row, row},
		{"several blocks of rows and slabs", 1, 1100, 17, 400, row, row},
		{"several blocks each way", 1, 1100, 1100, 9, col, col},
		{"a row times a matrix", 1, 1, 2500, 300, row, row},
		{"a transposed matrix times a column", 1, 2500, 1, 300, col, row},
		{"a row times a transposed matrix", 1, 1, 300, 700, row, col},
		{"a matrix times a column", 1, 300, 1, 700, row, row},
		{"few rows, k contiguous in neither", 1, 7, 300, 400, col, row},
		{"few rows packed, k contiguous in B", 1, 7, 300, 400, col, col},
		{"few rows, too deep to pack", 1, 3, 20, 100_000, col, col},
		{"few columns packed, k contiguous in A", 1, 300, 7, 400, row, row},
		{"an outer product", 1, 300, 300, 1, row, row},
		{"attention's scores", 64, 32, 32, 64, row, col},
		{"attention's values", 64, 32, 64, 32, row, row},
		{"a batch of products that are large", 3, 150, 150, 150, row, row},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachKernel(t, 2, func(t *testing.T, p *Pool) {
				for _, accumulate := range []bool{false, true} {
					r := rand.New(rand.NewPCG(1, 2))
					f := &fig{count: c.count, m: c.m, n: c.n, k: c.k, a: c.a(c.m, c.k), b: c.b(c.k, c.n), accumulate: accumulate}
					f.aStep, f.bStep, f.ldc, f.cStep = f.m*f.k, f.k*f.n, f.n, f.m*f.n
					f.a.Data, f.b.Data = numbers(r, f.count*f.aStep), numbers(r, f.count*f.bStep)
					f.fill(r)
					f.multiply(p)
					if fault := f.fault(); fault != "" {
						t.Errorf("%v: %s", f, fault)
					}
				}
			})
		})
	}
}

func TestThreadsDoNotChangeABit(t *testing.T) {
	for _, kern := range kernels() {
		t.Run(kern.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := drawFig(t)
				before := slices.Clone(f.c)
				var first []float32
				for threads := 1; threads <= 4; threads++ {
					p := newPool(threads, kern)
					copy(f.c, before)
					f.multiply(p)
					p.Close()
					if first == nil {
						first = slices.Clone(f.c)
					}
					for i := range first {
						if math.Float32bits(first[i]) != math.Float32bits(f.c[i]) {
							t.Fatalf("%v: element %d is %g with one thread, %g with %d", f, i, first[i], f.c[i], threads)
						}
					}
				}
			})
		})
	}
}

func TestMemberThatIsHeldUpFindsItsPanelsAsTheyWere(t *testing.T) {
	slow := portable()
	tile := slow.tile
	var tiles atomic.Int64
	slow.tile = func(rows, cols, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool) {
		if tiles.Add(1)%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		tile(rows, cols, k, a, aRow, aStep, b, bStep, c, ldc, accumulate)
	}
	p := newPool(6, slow)
	defer p.Close()
	// A phase has two tiles only: the other members run ahead to the next ones.
	f := &fig{count: 1, m: 2, n: 8, k: 12 * slabDepth, ldc: 8, cStep: 16}
	r := rand.New(rand.NewPCG(1, 2))
	f.a, f.b = Operand{numbers(r, f.m*f.k), f.k, 1}, Operand{numbers(r, f.k*2*f.n), 2 * f.n, 2}
	f.fill(r)
	for range 10 {
		product := &p.spaces[0].product
		product.plan(slow, len(p.spaces), f.m, f.n, f.k, f.a, f.b, f.c, f.ldc, false)
		p.run(product, len(p.spaces))
		if fault := f.fault(); fault != "" {
			t.Fatalf("%v: %s", f, fault)
		}
	}
}

func TestNoDepthGivesZerosOrWhatWasThere(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, p *Pool) {
		c := []float32{1, 2, canary, 3, 4, canary}
		p.Multiply(2, 2, 0, Operand{}, Operand{}, c, 3, true)
		if want := []float32{1, 2, canary, 3, 4, canary}; !slices.Equal(c, want) {
			t.Errorf("accumulated: %v, want %v", c, want)
		}
		p.Multiply(2, 2, 0, Operand{}, Operand{}, c, 3, false)
		if want := []float32{0, 0, canary, 0, 0, canary}; !slices.Equal(c, want) {
			t.Errorf("set: %v, want %v", c, want)
		}
	})
}

func TestNaNAndInfinityAreNotSkippedForZeros(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	class := func(v float32) string {
		switch {
		case v != v:
			return "NaN"
		case math.IsInf(float64(v), 0):
			return "infinite"
		}
		return "finite"
	}
	for _, c := range []struct {
		name   string
		factor float32
		other  float32
		want   string
	}{
		{"zero times NaN is NaN", 0, nan, "NaN"},
		{"zero times infinity is NaN", 0, inf, "NaN"},
		{"one times infinity is infinite", 1, inf, "infinite"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachKernel(t, 2, func(t *testing.T, p *Pool) {
				for _, s := range []struct{ m, n, k int }{{1, 1, 1}, {1, 40, 70}, {40, 1, 70}, {5, 40, 300}, {40, 40, 40}, {20, 90, 300}} {
					for _, at := range []int{0, s.k / 2, s.k - 1} {
						for _, transposed := range []bool{false, true} {
							a := Operand{slices.Repeat([]float32{1}, s.m*s.k), s.k, 1}
							b := Operand{slices.Repeat([]float32{1}, s.k*s.n), s.n, 1}
							if transposed {
								a.RowStride, a.ColStride = 1, s.m
								b.RowStride, b.ColStride = 1, s.k
							}
							// The last row of A meets the last column of B at one place along k.
							i, j := s.m-1, s.n-1
							a.Data[i*a.RowStride+at*a.ColStride] = c.factor
							b.Data[at*b.RowStride+j*b.ColStride] = c.other
							got := make([]float32, s.m*s.n)
							p.Multiply(s.m, s.n, s.k, a, b, got, s.n, false)
							if v := got[i*s.n+j]; class(v) != c.want {
								t.Errorf("%v at %d, transposed %v: %g, want %s", s, at, transposed, v, c.want)
							}
							if j > 0 && class(got[i*s.n]) != "finite" {
								t.Errorf("%v at %d, transposed %v: it spread to another column: %g", s, at, transposed, got[i*s.n])
							}
						}
					}
				}
			})
		})
	}
}

func TestWrongOperandsPanicWithTheirNames(t *testing.T) {
	four := make([]float32, 4)
	good := Operand{four, 2, 1}
	for _, c := range []struct {
		name, want string
		call       func(p *Pool)
	}{
		{"a short A is named", "gemm: A, 1 of 2 by 3, reaches to element 4 of 4",
			func(p *Pool) { p.Multiply(2, 2, 3, good, Operand{make([]float32, 6), 2, 1}, four, 2, false) }},
		{"a short B is named", "gemm: B, 1 of 2 by 3, reaches to element 4 of 4",
			func(p *Pool) { p.Multiply(2, 3, 2, good, good, make([]float32, 6), 3, false) }},
		{"a short C is named", "gemm: C, 1 of 2 by 2, reaches to element 4 of 4",
			func(p *Pool) { p.Multiply(2, 2, 2, good, good, four, 3, false) }},
		{"a short batch is named", "gemm: A, 2 of 2 by 2, reaches to element 4 of 4",
			func(p *Pool) { p.MultiplyBatch(2, 2, 2, 2, good, 1, good, 0, make([]float32, 8), 2, 4, false) }},
		{"a negative stride is refused", "gemm: A has a negative stride: rows -2, columns 1, batch 0",
			func(p *Pool) { p.Multiply(2, 2, 2, Operand{four, -2, 1}, good, four, 2, false) }},
		{"a negative extent is refused", "gemm: negative extent: count 1, m -1, n 2, k 2",
			func(p *Pool) { p.Multiply(-1, 2, 2, good, good, four, 2, false) }},
		{"a closed pool is refused", "gemm: the pool is closed",
			func(p *Pool) { p.Close(); p.Multiply(2, 2, 2, good, good, make([]float32, 4), 2, false) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewPool(2)
			defer p.Close()
			defer func() {
				if got := fmt.Sprint(recover()); got != c.want {
					t.Errorf("panicked with %q, want %q", got, c.want)
				}
			}()
			c.call(p)
		})
	}
}

func TestPoolServesManyGoroutines(t *testing.T) {
	shared := NewPool(3)
	defer shared.Close()
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			p := shared
			if g%2 == 0 {
				p = NewPool(1 + g)
				defer p.Close()
			}
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 30 {
				f := &fig{count: 1 + r.IntN(3), m: 1 + r.IntN(130), n: 1 + r.IntN(130), k: 1 + r.IntN(130)}
				f.a, f.b = Operand{numbers(r, f.count*f.m*f.k), f.k, 1}, Operand{numbers(r, f.count*f.k*f.n), 1, f.k}
				f.aStep, f.bStep, f.ldc, f.cStep = f.m*f.k, f.k*f.n, f.n, f.m*f.n
				f.fill(r)
				f.multiply(p)
				if fault := f.fault(); fault != "" {
					t.Errorf("%v: %s", f, fault)
				}
			}
		})
	}
	all.Wait()
}

func TestMultiplyAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	data, c := numbers(r, 300*300), make([]float32, 300*300)
	eachKernel(t, 2, func(t *testing.T, p *Pool) {
		for _, s := range []struct{ count, m, n, k int }{{1, 300, 300, 300}, {1, 1, 300, 300}, {1, 3, 300, 300}, {1, 300, 3, 300}, {20, 32, 32, 64}} {
			o := Operand{data, s.k, 1}
			if n := testing.AllocsPerRun(5, func() {
				p.MultiplyBatch(s.count, s.m, s.n, s.k, o, s.m*s.k, Operand{data, 1, s.k}, s.k*s.n, c, s.n, s.m*s.n, false)
			}); n != 0 {
				t.Errorf("%v: %g allocations", s, n)
			}
		}
	})
}

func TestPoolKeepsNoOperand(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct{ count, m, n, k int }{{1, 100, 100, 100}, {1, 1, 100, 100}, {1, 100, 2, 100}, {40, 32, 32, 64}} {
		a, b := Operand{numbers(r, s.count*s.m*s.k), s.k, 1}, Operand{numbers(r, s.count*s.k*s.n), s.n, 1}
		p.MultiplyBatch(s.count, s.m, s.n, s.k, a, s.m*s.k, b, s.k*s.n, make([]float32, s.count*s.m*s.n), s.n, s.m*s.n, false)
		if p.batch.a.Data != nil || p.batch.b.Data != nil || p.batch.c != nil || p.job != nil {
			t.Errorf("%v: the pool keeps its batch", s)
		}
		for i := range p.spaces {
			m := &p.spaces[i]
			for name, kept := range map[string][]float32{
				"product's A": m.product.a.Data, "product's B": m.product.b.Data, "product's C": m.product.c,
				"dots' x": m.dots.x, "dots' y": m.dots.y, "dots' c": m.dots.c,
				"sweep's A": m.sweep.a.Data, "sweep's B": m.sweep.b.Data, "sweep's C": m.sweep.c,
			} {
				if kept != nil {
					t.Errorf("%v: member %d keeps %s", s, i, name)
				}
			}
		}
	}
}

func TestKernelsAreTriedFastestFirst(t *testing.T) {
	var names []string
	for _, kern := range kernels() {
		names = append(names, kern.name)
	}
	if all := []string{"avx512", "avx2", "portable"}; !slices.Equal(all[max(0, len(all)-len(names)):], names) {
		t.Errorf("kernels are %v", names)
	}
}
