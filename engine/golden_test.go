package engine_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// golden is what testdata/golden.py wrote: what PyTorch computes.
type golden struct {
	Cases     []goldenNumbers
	Odd       []goldenNumbers // with NaN and infinities
	Sequences []goldenSequence
}

// goldenNumbers are what a case computes.
type goldenNumbers struct {
	Name string
	In   []array
	Out  []array
	Grad []*array // one for each input, nil where it has none; nil for all if there is nothing to differentiate
}

// array is a tensor on the host, of floats or of ints.
type array struct {
	Shape  []int
	Floats floats
	Ints   []int32
}

// floats are numbers, and as strings those that JSON has no numbers for.
type floats []float32

func (f *floats) UnmarshalJSON(text []byte) error {
	var numbers []any
	if err := json.Unmarshal(text, &numbers); err != nil {
		return err
	}
	for _, n := range numbers {
		x, err := strconv.ParseFloat(fmt.Sprint(n), 64)
		if err != nil {
			return err
		}
		*f = append(*f, float32(x))
	}
	return nil
}

func (a array) upload(o engine.Ops) *engine.Tensor {
	if a.Ints != nil {
		return o.FromInts(a.Ints, a.Shape...)
	}
	return o.FromFloats(a.Floats, a.Shape...)
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// Errors allowed against PyTorch in float64, relative to the larger of 1 and the
// expected value. The worst seen are 8e-7 forward and 3.2e-6 backward; other kernels
// add up in another order.
const (
	forwardTolerance  = 3e-6
	backwardTolerance = 1e-5
)

// compare reports how far got is from what PyTorch has.
func compare(t *testing.T, what string, o engine.Ops, got *engine.Tensor, want array, tolerance float64) {
	t.Helper()
	if got.Shape() != engine.ShapeOf(want.Shape...) {
		t.Errorf("%s has the shape %v, PyTorch's %v", what, got.Shape(), want.Shape)
		return
	}
	if want.Ints != nil {
		if ints := o.Ints(got); !reflect.DeepEqual(ints, want.Ints) {
			t.Errorf("%s is %v, PyTorch has %v", what, ints, want.Ints)
		}
		return
	}
	for i, g := range o.Floats(got) {
		w := float64(want.Floats[i])
		if float64(g) == w || g != g && w != w {
			continue
		}
		if !(math.Abs(float64(g)-w) <= tolerance*max(1, math.Abs(w))) {
			t.Errorf("%s[%d] is %g, PyTorch has %g", what, i, g, w)
		}
	}
}

// TestGoldenNumbers holds every operation, composed function and layer against
// PyTorch, forward and backward.
func TestGoldenNumbers(t *testing.T) {
	g := readGolden(t)
	known := make(map[string]bool)
	for _, c := range g.Cases {
		known[c.Name] = true
		compute, ok := goldenCases[c.Name]
		if !ok {
			t.Errorf("golden.json has the case %q, which the test does not compute", c.Name)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			inner, _ := enginetest.NewEager(t)
			c.hold(t, inner, compute)
		})
	}
	for name := range goldenCases {
		if !known[name] {
			t.Errorf("golden.json lacks the case %q; run testdata/golden.py", name)
		}
	}
}

// hold has the operations compute the case, forward and backward.
func (c goldenNumbers) hold(t *testing.T, inner engine.Ops, compute goldenCase) {
	t.Helper()
	o := autodiff.New(inner)
	err := engine.Run(o, func(*engine.Scope) error {
		in := make([]*engine.Tensor, len(c.In))
		for i, a := range c.In {
			in[i] = a.upload(o)
			if c.Grad != nil && c.Grad[i] != nil {
				o.Track(in[i])
			}
		}
		out := compute.f(o, in)
		if len(out) != len(c.Out) {
			t.Fatalf("%d results, PyTorch has %d", len(out), len(c.Out))
		}
		loss := o.Full(0)
		for i, want := range c.Out {
			compare(t, "result", o, out[i], want, forwardTolerance)
			if autodiff.Tracked(out[i]) {
				loss = o.Add(loss, weighted(o, out[i]))
			}
		}
		if c.Grad == nil {
			return nil
		}
		if err := o.Backward(loss); err != nil {
			return err
		}
		for i, want := range c.Grad {
			if want == nil {
				continue
			}
			grad := autodiff.Grad(in[i])
			if grad == nil {
				t.Fatalf("input %d has no gradient", i)
			}
			compare(t, "gradient", o, grad, *want, backwardTolerance)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if o.Nodes() != 0 {
		t.Errorf("%d nodes are left", o.Nodes())
	}
}

// weighted is the sum of the elements, weighted so as to tell them apart: by the
// rule that golden.py has.
func weighted(o engine.Ops, t *engine.Tensor) *engine.Tensor {
	w := make([]float32, t.Shape().Elements())
	for i := range w {
		w[i] = 0.5 + float32(i%7)/8
	}
	return o.Sum(o.Mul(t, o.FromFloats(w, t.Shape().Slice()...)))
}

// TestGoldenNumbersCoverTheEngine finds what has no case: operations, composed
// functions, layers.
func TestGoldenNumbersCoverTheEngine(t *testing.T) {
	covered := map[string]bool{
		// Carried by every case, or not a computation.
		"Ops.Begin": true, "Ops.Device": true, "Ops.Valid": true, "Ops.Sync": true, "Ops.Full": true,
		"Ops.FromFloats": true, "Ops.FromInts": true, "Ops.Floats": true, "Ops.Ints": true,
		"nn.Dropout": true, // engine.Dropout, or nothing
	}
	for _, c := range goldenCases {
		for name := range strings.SplitSeq(c.of, " ") {
			covered[name] = true
		}
	}
	ops := reflect.TypeFor[engine.Ops]()
	for i := range ops.NumMethod() {
		if name := "Ops." + ops.Method(i).Name; !covered[name] {
			t.Errorf("no golden case is of %s", name)
		}
	}
	for _, name := range exported(t, "compose*.go", "engine", func(f *ast.FuncDecl) string {
		if f.Recv == nil {
			return f.Name.Name
		}
		return ""
	}) {
		if !covered[name] {
			t.Errorf("no golden case is of %s", name)
		}
	}
	for _, name := range exported(t, "nn/*.go", "nn", func(f *ast.FuncDecl) string {
		if f.Recv == nil || f.Name.Name != "Forward" {
			return ""
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		return receiver.(*ast.Ident).Name
	}) {
		if !covered[name] {
			t.Errorf("no golden case is of %s", name)
		}
	}
}

// exported lists the exported names that choose makes of the functions in files,
// tests left out, led by the package's name.
func exported(t *testing.T, pattern, pkg string, choose func(*ast.FuncDecl) string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if name := choose(f); name != "" && ast.IsExported(name) {
					names = append(names, pkg+"."+name)
				}
			}
		}
	}
	if len(names) == 0 {
		t.Fatalf("nothing is exported by %s", pattern)
	}
	return names
}
