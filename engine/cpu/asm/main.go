// Command asm writes the assembly of the packages gemm and vec, and the Go
// declarations that stand beside it, into their folders in the folder given. It
// is a module of its own, so that avo is a dependency of this command and not of
// the product.
package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: asm FOLDER")
		os.Exit(2)
	}
	written, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "asm:", err)
		os.Exit(1)
	}
	for name, text := range written {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asm:", err)
			os.Exit(1)
		}
	}
}

// generate returns the text of every file, by its path.
func generate() (map[string][]byte, error) {
	written := make(map[string][]byte)
	for _, file := range []struct {
		name string
		emit func(*build.Context)
	}{
		{"gemm/tile_avx2_amd64", tileAVX2},
		{"gemm/tile_avx512_amd64", tileAVX512},
		{"gemm/dot_avx2_amd64", dotAVX2},
		{"gemm/dot_avx512_amd64", dotAVX512},
		{"gemm/sweep_avx2_amd64", sweepAVX2},
		{"gemm/sweep_avx512_amd64", sweepAVX512},
		{"gemm/gather_amd64", gather},
		{"gemm/transpose_amd64", transpose},
		{"vec/exp_amd64", exponentials},
		{"vec/arithmetic_amd64", arithmetic},
		{"vec/blend_amd64", blends},
		{"vec/fold_amd64", folds},
		{"vec/product_amd64", products},
		{"vec/step_amd64", steps},
		{"vec/tile_amd64", tiles},
	} {
		ctx := build.NewContext()
		ctx.ConstraintExpr("!noasm")
		file.emit(ctx)
		parsed, err := ctx.Result()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		if err := pass.Compile.Execute(parsed); err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		cfg := printer.Config{Name: "engine/cpu/asm", Pkg: path.Dir(file.name)}
		for extension, print := range map[string]printer.Printer{
			".s":  printer.NewGoAsm(cfg),
			".go": printer.NewStubs(cfg),
		} {
			text, err := print.Print(parsed)
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", file.name, extension, err)
			}
			written[file.name+extension] = text
		}
	}
	return written, nil
}
