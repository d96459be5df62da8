package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// fontModule has twelve fonts, and gonum/plot puts them all into each program that draws. memdiag writes in two
// of them, and plot measures in a third; a wheel without the others is 1.8 MB smaller.
const fontModule = "codeberg.org/go-fonts/liberation"

var fontsUsed = []string{"liberationsansregular", "liberationsansbold", "liberationserifregular"}

// fontCopy is where the module is copied to. The path is in the binary, and so must be the same in each build.
const fontCopy = "./.cache/liberation"

// fewFonts writes a go.mod to a folder that has the fonts from a copy of their module, in which the fonts that
// memdiag uses stand in for the others. It returns the path for go build -modfile.
func fewFonts(folder string) (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "-deps", "gonum.org/v1/plot/font/liberation").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	if err := os.RemoveAll(fontCopy); err != nil {
		return "", err
	}
	for dir := range strings.Lines(string(out)) {
		name := filepath.Base(strings.TrimSpace(dir))
		if !strings.Contains(dir, "/go-fonts/liberation@") {
			continue
		}
		to := filepath.Join(fontCopy, name)
		if slices.Contains(fontsUsed, name) {
			err = os.CopyFS(to, os.DirFS(strings.TrimSpace(dir)))
		} else if err = os.MkdirAll(to, 0o755); err == nil { //nolint:gosec // source code
			err = os.WriteFile(filepath.Join(to, "data.go"), standIn(name), 0o644) //nolint:gosec // source code
		}
		if err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(fontCopy, "go.mod"), []byte("module "+fontModule+"\n"), 0o644); err != nil { //nolint:gosec // source code
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if name == "go.mod" {
			text = fmt.Appendf(bytes.Clone(text), "\nreplace %s => %s\n", fontModule, fontCopy)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "go.mod"), nil
}

// standIn is the source of a font's package that has another font.
func standIn(name string) []byte {
	used := fontsUsed[0]
	if strings.Contains(name, "bold") {
		used = fontsUsed[1]
	}
	return fmt.Appendf(nil, "package %s\n\nimport %q\n\nvar TTF = %s.TTF\n", name, fontModule+"/"+used, used)
}
