package torch

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkDecode reads files from memory: recorded ones, the larger kinds,
// and, where MEMDIAG_BENCH_FILE names one, any other.
func BenchmarkDecode(b *testing.B) {
	dir := sharedDir(b, "data", "torch")
	paths := []string{
		filepath.Join(dir, "wedsonlin_medium_1024_training.pickle"),
		filepath.Join(dir, "cs336_kk_ctx128_forward.pickle"),
		filepath.Join(dir, "cpppickler_from_wedsonlin_512_inference.pickle"),
		filepath.Join(dir, "muduard_dump_2.pickle"),
		filepath.Join(dir, "yiyi_1.3b_1.pickle"),
		filepath.Join(dir, "mosaic_output.pickle"),
		filepath.Join("testdata", "empty.pickle"),
	}
	if extra := os.Getenv("MEMDIAG_BENCH_FILE"); extra != "" {
		paths = append(paths, extra)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode("file", bytes.NewReader(data), int64(len(data)), Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
