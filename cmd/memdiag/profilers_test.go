package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLeakOfToyProgramsIsFirst compares profiles that real profilers took of
// programs that leak at one line.
func TestLeakOfToyProgramsIsFirst(t *testing.T) {
	for _, c := range []struct {
		profiler, files string
		line            string // of the leak; "" where the profiler knows no lines
		blocks, bytes   int64  // between the first file and the last
	}{
		// The slice that holds them grows in the same line: from 256 to 768 bytes.
		{"Go", "go_*.pb.gz", "leak.go:23", 20, 20*16<<10 + 512},
		{"Go, as text", "go_*.txt.gz", "leak.go:23", 20, 20*16<<10 + 512},
		{"gperftools, as text", "gperftools_*.heap", "", 20, 20 * 10_000},
		{"gperftools", "gperftools_*.pb.gz", "leak.c:10", 20, 20 * 10_000},
		{"JAX", "jax_*.pb.gz", "leak_jax.py:21", 20, 20 * 64 * 256 * 4},
		{"heaptrack", "heaptrack_*.zst", "leak.c:10", 20, 20 * 10_000},
		{"heaptrack_print, which counts none", "heaptrack_print_*.txt", "leak.c:10", 0, 20 * 10_000},
		{"DHAT", "dhat_*.json", "leak.c:10", 20, 20 * 10_000},
		{"massif, which counts no blocks", "massif_*.out", "leak.c:10", 0, 20 * 10_000},
		{"memray", "memray_*.csv", "leak_python.py:13", 20, 20 * 10_001},
		{"jemalloc", "jemalloc_[13]0.heap", "", 20, 20 * 10_240},
		{"torch.profiler", "profiler_*.json.gz", "leak_torch.py:18", 4, 4 * 32 * 64 * 4},
		// An object and a buffer a step; the list that keeps them grows too.
		{"tracemalloc", "tracemalloc_*.pickle", "leak_python.py:13", 100, 50*(56+10_001) + 384},
	} {
		t.Run(c.profiler, func(t *testing.T) {
			files, err := filepath.Glob("../../testdata/profilers/" + c.files)
			if err != nil || len(files) < 2 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			var shown struct {
				Live  struct{ Bytes int64 }
				Sites []struct {
					Frames []codeLine
					Bytes  int64
				}
			}
			decodeOutput(t, &shown, "show", "--format", "json", "--top", "1000", files[len(files)-1])
			var sum, leaked int64
			for _, s := range shown.Sites {
				sum += s.Bytes
				if atLine(s.Frames, c.line) {
					leaked = max(leaked, s.Bytes)
				}
			}
			if sum != shown.Live.Bytes || leaked < c.bytes {
				t.Errorf("sites of %d bytes, want %d; %d of them at %s, want %d", sum, shown.Live.Bytes, leaked, c.line, c.bytes)
			}
			for _, args := range [][]string{files, {files[0], files[len(files)-1]}} {
				var got struct {
					Findings []struct {
						Frames []codeLine
						Growth struct{ Blocks, Bytes int64 }
					}
				}
				decodeOutput(t, &got, append([]string{"diff", "--format", "json"}, args...)...)
				if len(got.Findings) == 0 {
					t.Fatal("nothing found")
				}
				first := got.Findings[0]
				if !atLine(first.Frames, c.line) || first.Growth.Blocks != c.blocks || first.Growth.Bytes != c.bytes {
					t.Errorf("of %d files, first is %v with %d blocks, %d bytes; want %s, %d, %d",
						len(args), first.Frames, first.Growth.Blocks, first.Growth.Bytes, c.line, c.blocks, c.bytes)
				}
			}
		})
	}
}

// TestWhatCountsNoBlocksSaysNothingOfThem holds against what seemed to be a block that is
// replaced by a larger one.
func TestWhatCountsNoBlocksSaysNothingOfThem(t *testing.T) {
	for _, name := range []string{"massif_%d.out", "heaptrack_print_%d.txt"} {
		dir := t.TempDir()
		var files []string
		for step, of := range map[int]int{10: 10, 20: 10, 30: 30} {
			data, err := os.ReadFile("../../testdata/profilers/" + fmt.Sprintf(name, of))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, fmt.Sprintf(name, step))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		slices.Sort(files)
		for _, files := range [][]string{files, files[1:]} {
			var out, talk bytes.Buffer
			if code := run(append([]string{"diff"}, files...), nil, &out, &talk); code != 0 {
				t.Fatalf("exit %d: %s", code, &talk)
			}
			text, _, _ := strings.Cut(out.String(), "Live memory,")
			if !strings.Contains(text, "blocks are not counted") || strings.Contains(text, "block/") || strings.Contains(text, "blocks/") ||
				strings.Contains(text, "1 block") || strings.Contains(text, "cache-regrown") {
				t.Errorf("%d of %s:\n%s", len(files), name, text)
			}
		}
	}
}

// TestBlocksThatNobodyCountedAreNoFigureAnywhere looks for figures of blocks in all that is
// printed and written of such profiles, and of what they were converted to.
func TestBlocksThatNobodyCountedAreNoFigureAnywhere(t *testing.T) {
	figure := regexp.MustCompile(`\d blocks?\b|"blocks": |_blocks": `)
	for _, name := range []string{"massif_%d.out", "heaptrack_print_%d.txt"} {
		dir := t.TempDir()
		written := func(name string) string { return filepath.Join(dir, name) }
		before, after := "../../testdata/profilers/"+fmt.Sprintf(name, 10), "../../testdata/profilers/"+fmt.Sprintf(name, 30)
		for _, args := range [][]string{
			{"convert", before, "-o", written("snapshot_10.pb.gz")}, {"convert", after, "-o", written("snapshot_30.memdiag")},
			{"convert", after, "-o", written("snapshot.json")},
			{"show", after}, {"show", "--format", "json", after}, {"show", written("snapshot_10.pb.gz")}, {"show", written("snapshot_30.memdiag")},
			{"diff", before, after}, {"diff", "--format", "json", before, after}, {"diff", "--format", "md", before, after}, {"diff", written("snapshot_10.pb.gz"), written("snapshot_30.memdiag")},
			{"report", after, "-o", written("one.html")}, {"report", before, after, "-o", written("two.html")},
			{"flame", after, "-o", written("one.svg")}, {"flame", before, after, "-o", written("two.svg")}, {"flame", "--rate", before, after, "-o", written("rate.svg")},
		} {
			var out, talk bytes.Buffer
			if code := run(args, nil, &out, &talk); code != exitFine {
				t.Fatalf("%s: exit %d: %s", args, code, &talk)
			}
			text := out.Bytes()
			if file := args[len(args)-1]; strings.HasPrefix(file, dir) && args[0] != "show" && args[0] != "diff" {
				var err error
				if text, err = os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			// Segments have lists of blocks, and pages scripts.
			text = bytes.ReplaceAll(text, []byte(`"blocks": [`), nil)
			if body, _, ok := bytes.Cut(text, []byte("<script")); ok {
				text = body
			}
			if at := figure.FindIndex(text); at != nil {
				t.Errorf("%s has %q", args, text[max(0, at[0]-80):min(len(text), at[1]+40)])
			}
		}
	}
}

// TestWhatAHeapProfileDoesNotTellIsNotCalledNothing holds against figures of caches and of
// reserved memory, which heap profilers do not know.
func TestWhatAHeapProfileDoesNotTellIsNotCalledNothing(t *testing.T) {
	for _, name := range []string{"massif_*.out", "jax_*.pb.gz"} {
		files, err := filepath.Glob("../../testdata/profilers/" + name)
		if err != nil || len(files) < 2 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		page := filepath.Join(t.TempDir(), "report.html")
		for _, args := range [][]string{{"show", files[0]}, {"show", "--format", "json", files[0]}, append([]string{"diff", "--format", "json"}, files...), append([]string{"diff"}, files...), append([]string{"report", "-o", page}, files...)} {
			var out, talk bytes.Buffer
			if code := run(args, nil, &out, &talk); code != 0 {
				t.Fatalf("exit %d: %s", code, &talk)
			}
			text := out.Bytes()
			if args[0] == "report" {
				if text, err = os.ReadFile(page); err != nil {
					t.Fatal(err)
				}
				_, text, _ = bytes.Cut(text, []byte("<body"))
				text, _, _ = bytes.Cut(text, []byte("<script"))
			}
			for _, figure := range []string{"reserved", "cached, in empty segments"} {
				if bytes.Contains(text, []byte(figure)) {
					t.Errorf("%s of %s: %q in\n%s", args[0], name, figure, text)
				}
			}
		}
	}
}

type codeLine struct {
	File string
	Line int
}

// atLine reports whether a stack has a line, "leak.go:23"; true for "", where nobody
// can tell.
func atLine(frames []codeLine, line string) bool {
	return line == "" || slices.ContainsFunc(frames, func(f codeLine) bool {
		return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line) == line
	})
}

// decodeOutput runs memdiag and decodes the JSON that it prints.
func decodeOutput(t *testing.T, into any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(args, nil, &stdout, &stderr); code != exitFine {
		t.Fatalf("%s: exit code %d: %s", args[0], code, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// TestConvertedProfilesHaveTheirSites converts the profilers' files to and fro, and reads
// what came out.
func TestConvertedProfilesHaveTheirSites(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*.pb.gz", "*.zst", "*.txt", "*.out", "*.csv", "*.heap", "*.json", "*.json.gz", "*.pickle", "../../snapshot/memray/testdata/*.html.gz"} {
		files, err := filepath.Glob("../../testdata/profilers/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				type sites struct {
					Sites []struct {
						StackHash     string `json:"stack_hash"`
						Blocks, Bytes int64
					}
				}
				folder := t.TempDir()
				var want sites
				decodeOutput(t, &want, "show", "--format", "json", "--top", "1000", file)
				if len(want.Sites) == 0 || want.Sites[0].StackHash == "" {
					t.Fatalf("no sites: %+v", want)
				}
				for _, ending := range []string{"1.memdiag", "2.pb.gz", "3.memdiag", "4.pb.gz"} { // each of the one before
					out := filepath.Join(folder, ending)
					var stderr bytes.Buffer
					if code := run([]string{"convert", file, "-o", out}, nil, io.Discard, &stderr); code != exitFine {
						t.Fatalf("exit code %d: %s", code, &stderr)
					}
					var got sites
					decodeOutput(t, &got, "show", "--format", "json", "--top", "1000", out)
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("(-of the file, +of %s)\n%s", ending, d)
					}
					file = out
				}
			})
		}
	}
}
