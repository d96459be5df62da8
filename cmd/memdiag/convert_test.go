package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		for _, ending := range []string{".memdiag", ".json", ".pb.gz"} {
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

// TestWhatConvertWritesIsJudgedAlike holds against marks that got lost: windows of a profiler
// were compared, and the host's heap was taken for a device.
func TestWhatConvertWritesIsJudgedAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	window := func(step int) string {
		path := filepath.Join(dir, fmt.Sprintf("window_%d.json", step))
		event := `{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":7,"tid":1,"ts":%d,"args":{"Device Type":0,"Device Id":-1,"Addr":%d,"Bytes":64}}`
		text := `{"schemaVersion":1,"traceEvents":[` +
			fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"aten::empty","pid":7,"tid":1,"ts":%d,"dur":600},`, step*1000-50) + fmt.Sprintf(event, step*1000, step*4096) + "," + fmt.Sprintf(event, step*1000+500, step*4096+64) + "]}"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profiles := func(names ...string) []string {
		for i := range names {
			names[i] = filepath.Join("..", "..", "testdata", "profilers", names[i])
		}
		return names
	}
	verdict := func(t *testing.T, files []string) string {
		t.Helper()
		var out, talk bytes.Buffer
		if code := run(append([]string{"diff"}, files...), nil, &out, &talk); code != 0 {
			t.Fatalf("exit %d: %s", code, &talk)
		}
		line, _, _ := strings.Cut(out.String(), "\n")
		return line
	}
	for _, c := range []struct {
		name  string
		files []string
		born  bool // blocks have births, which pprof has not
	}{
		{"DHAT", profiles("dhat_10.json", "dhat_30.json"), false},
		{"Go", profiles("go_10.pb.gz", "go_20.pb.gz", "go_30.pb.gz"), false},
		{"gperftools", profiles("gperftools_10.pb.gz", "gperftools_30.pb.gz"), false},
		{"Go, as text", profiles("go_10.txt.gz", "go_30.txt.gz"), false},
		{"gperftools, as text", profiles("gperftools_10.heap", "gperftools_30.heap"), false},
		{"heaptrack", profiles("heaptrack_10.zst", "heaptrack_30.zst"), false},
		{"heaptrack_print", profiles("heaptrack_print_10.txt", "heaptrack_print_30.txt"), false},
		{"JAX", profiles("jax_20.pb.gz", "jax_30.pb.gz", "jax_40.pb.gz"), false},
		{"jemalloc", profiles("jemalloc_10.heap", "jemalloc_30.heap"), false},
		{"massif", profiles("massif_10.out", "massif_30.out"), false},
		{"memray", profiles("memray_10.csv", "memray_30.csv"), false},
		{"tracemalloc", profiles("tracemalloc_10.pickle", "tracemalloc_60.pickle"), false},
		{"torch.profiler", profiles("profiler_2.json.gz", "profiler_6.json.gz"), true},
		{"windows of torch.profiler", []string{window(1), window(2), window(3)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := verdict(t, c.files)
			for _, ending := range []string{".memdiag", ".json", ".pb.gz"} {
				if c.born && ending == ".pb.gz" {
					continue
				}
				mixed := append([]string(nil), c.files...)
				var all []string
				for i, path := range c.files {
					output := filepath.Join(t.TempDir(), filepath.Base(path)+ending)
					var said bytes.Buffer
					if code := run([]string{"convert", path, "-o", output}, nil, &said, &said); code != 0 {
						t.Fatalf("exit code %d: %s", code, &said)
					}
					all = append(all, output)
					if i > 0 {
						mixed[i] = output
					}
				}
				if got := verdict(t, all); got != want {
					t.Errorf("as %s: %s\nwant %s", ending, got, want)
				}
				if got := verdict(t, mixed); got != want {
					t.Errorf("all but the first as %s: %s\nwant %s", ending, got, want)
				}
			}
		})
	}
}
