package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatIsCommittedIsWhatIsGenerated(t *testing.T) {
	written, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range written {
		got, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./engine/cpu/gemm", name)
		}
	}
}
