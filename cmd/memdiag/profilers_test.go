package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

// TestLeakOfToyProgramsIsFirst compares profiles that real profilers took of
// programs that leak at one line.
func TestLeakOfToyProgramsIsFirst(t *testing.T) {
	for _, c := range []struct {
		profiler, files string
		line            string
		blocks, bytes   int64 // between the first file and the last
	}{
		// The slice that holds them grows in the same line: from 256 to 768 bytes.
		{"Go", "pprofio/testdata/go_*.pb.gz", "leak.go:23", 20, 20*16<<10 + 512},
		{"JAX", "pprofio/testdata/jax_*.pb.gz", "leak.py:21", 20, 20 * 64 * 256 * 4},
	} {
		t.Run(c.profiler, func(t *testing.T) {
			files, err := filepath.Glob("../../snapshot/" + c.files)
			if err != nil || len(files) < 2 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			for _, args := range [][]string{files, {files[0], files[len(files)-1]}} {
				var stdout, stderr bytes.Buffer
				if code := run(append([]string{"diff", "--format", "json"}, args...), nil, &stdout, &stderr); code != exitFine {
					t.Fatalf("exit code %d: %s", code, &stderr)
				}
				var got struct {
					Findings []struct {
						Headline struct {
							File string
							Line int
						}
						Growth struct{ Blocks, Bytes int64 }
					}
				}
				if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				if len(got.Findings) == 0 {
					t.Fatal("nothing found")
				}
				first := got.Findings[0]
				at := fmt.Sprintf("%s:%d", filepath.Base(first.Headline.File), first.Headline.Line)
				if at != c.line || first.Growth.Blocks != c.blocks || first.Growth.Bytes != c.bytes {
					t.Errorf("of %d files, first is %s with %d blocks, %d bytes; want %s, %d, %d",
						len(args), at, first.Growth.Blocks, first.Growth.Bytes, c.line, c.blocks, c.bytes)
				}
			}
		})
	}
}
