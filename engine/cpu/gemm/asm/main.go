// Command asm writes the assembly of package gemm and the Go declarations that
// stand beside it. It is a module of its own, so that avo is a dependency of
// this command and not of the product.
package main

import (
	"fmt"
	"os"
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

// generate returns the text of every file, by its name.
func generate() (map[string][]byte, error) {
	written := make(map[string][]byte)
	for _, file := range []struct {
		name string
		emit func(*build.Context)
	}{
		{"tile_avx2_amd64", tileAVX2},
		{"tile_avx512_amd64", tileAVX512},
		{"dot_avx2_amd64", dotAVX2},
		{"dot_avx512_amd64", dotAVX512},
		{"sweep_avx2_amd64", sweepAVX2},
		{"sweep_avx512_amd64", sweepAVX512},
		{"gather_amd64", gather},
		{"transpose_amd64", transpose},
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
		cfg := printer.Config{Name: "engine/cpu/gemm/asm", Pkg: "gemm"}
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
