// Command shader compiles the WGSL beside it to the SPIR-V that package gpu embeds.
// It is a module of its own, so that no compiler is in the product.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gogpu/naga"
)

//go:embed *.wgsl
var sources embed.FS

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: shader FOLDER")
		os.Exit(2)
	}
	written, err := generate()
	for name, code := range written {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), code, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shader:", err)
		os.Exit(1)
	}
}

// variant is one shader made from a file, which is a template over it.
type variant struct {
	Name   string
	Inputs int    // of an elementwise shader
	Value  string // what it computes of the operands a and b
	Helper string // the function of functions.wgsl that it calls
	Flat   bool   // the operands are walked with one stride each
	Fold   string // sum, max or argmax
	Tile   []int  // 0 to n-1, to unroll loops with
}

// unary and binary are what the operations compute of a and b; helpers are in
// functions.wgsl.
var (
	unary = map[string]string{
		"neg": "-a", "exp": "exponential(a)", "log": "logarithm(a)", "sqrt": "root(a)", "recip": "1.0 / a",
		"abs": "abs(a)", "relu": "select(a, 0.0, a <= 0.0 && !is_nan(a))", "tanh": "tangent(a)", "sigmoid": "logistic(a)",
	}
	binary = map[string]string{
		"add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b",
		"max": "select(b, a, a > b || is_nan(a))", "pow": "power(a, b)",
		"less": "select(0.0, 1.0, a < b)", "equal": "select(0.0, 1.0, a == b)",
	}
)

func elementwise(op, suffix string, inputs int, value string) variant {
	v := variant{Name: op + suffix, Inputs: inputs, Value: value, Flat: suffix == flat}
	if helper, _, calls := strings.Cut(value, "("); calls {
		v.Helper = helper
	}
	return v
}

// Ends of the names of shaders that walk their views by one stride each, or by many.
const (
	flat    = "_flat"
	strided = "_strided"
)

// generate compiles every shader, by file name.
func generate() (map[string][]byte, error) {
	made := map[string][]byte{}
	add := func(file string, v variant) error {
		code, err := compile(file, v)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", v.Name, file, err)
		}
		made[v.Name+".spv"] = code
		return nil
	}
	for _, suffix := range []string{flat, strided} {
		for op, value := range unary {
			if err := add("elementwise.wgsl", elementwise(op, suffix, 1, value)); err != nil {
				return nil, err
			}
		}
		for op, value := range binary {
			if err := add("elementwise.wgsl", elementwise(op, suffix, 2, value)); err != nil {
				return nil, err
			}
		}
		// What only moves elements keeps every bit of them.
		for op, file := range map[string]string{"fill": "fill.wgsl", "copy": "copy.wgsl", "where": "where.wgsl"} {
			if err := add(file, variant{Name: op + suffix, Flat: suffix == flat}); err != nil {
				return nil, err
			}
		}
	}
	for _, fold := range []string{"sum", "max", "argmax"} {
		if err := add("reduce.wgsl", variant{Name: "reduce_" + fold, Fold: fold}); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"rand", "matmul_direct", "matmul_tiled", "gather", "scatter", "im2col", "col2im"} {
		tile := []int{0, 1, 2, 3}
		if name == "matmul_direct" {
			tile = append(tile, 4, 5, 6, 7)
		}
		if err := add(name+".wgsl", variant{Name: name, Tile: tile}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// compile makes SPIR-V of a file, with what all shaders share before it.
func compile(file string, v variant) ([]byte, error) {
	all, err := template.ParseFS(sources, "*.wgsl")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := all.ExecuteTemplate(&text, file, v); err != nil {
		return nil, err
	}
	return naga.Compile(text.String())
}
