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
		got, err := os.ReadFile(filepath.Join("..", "spirv", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./engine/gpu", name)
		}
	}
	committed, err := filepath.Glob(filepath.Join("..", "spirv", "*.spv"))
	if err != nil || len(committed) != len(written) {
		t.Errorf("%d shaders are committed, the generator writes %d; %v", len(committed), len(written), err)
	}
}
