package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// TestWhatConvertWritesReadsBackEqual converts a file of every format into those of the
// outputs that memdiag reads.
func TestWhatConvertWritesReadsBackEqual(t *testing.T) {
	type site struct {
		Hash  snapshot.Hash
		Count int64
		Bytes snapshot.Bytes
	}
	sites := func(t *testing.T, path string) map[site]int {
		t.Helper()
		s, err := files.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[site]int)
		for _, at := range s.Sites() {
			out[site{at.Hash, at.Count, at.Bytes}]++
		}
		return out
	}
	var paths []string
	for _, pattern := range []string{"*.pb.gz", "*.zst", "*.heap", "*.out", "*.csv", "*.json.gz", "*.pickle"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "testdata", "profilers", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no file like %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	dir := t.TempDir()
	dump := filepath.Join("..", "..", "snapshot", "torch", "testdata", "full.pickle.gz")
	for _, path := range append(paths, dump) {
		want := sites(t, path)
		for _, ending := range []string{".memdiag", ".pb.gz"} {
			if path == dump && ending == ".pb.gz" {
				continue // it has blocks without a stack, to which pprof gives a frame
			}
			t.Run(filepath.Base(path)+" as "+ending, func(t *testing.T) {
				output := filepath.Join(dir, filepath.Base(path)+ending)
				var said bytes.Buffer
				if code := run([]string{"convert", path, "-o", output}, nil, &said, &said); code != 0 {
					t.Fatalf("exit code %d: %s", code, &said)
				}
				if d := cmp.Diff(want, sites(t, output)); d != "" {
					t.Errorf("-read +read back\n%s", d)
				}
			})
		}
	}
}
