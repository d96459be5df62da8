package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// What lies where a snapshot should be is named, with the way to a snapshot.
func TestFilesOfOthersAreNamed(t *testing.T) {
	for content, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n":                                                              "a pointer of Git LFS",
		"CMDLINE python train.py\nMEM 12.5 1750000000.1\nFUNC f 1 2 3 4\nMEM x 1\nMEM NaN 1\nMEM 20 1750000001.1\nMEM 16 1750000002.6\nME": "from 12.5 MiB to 16.0 MiB in 2.5 s, at most 20.0 MiB",
		"CMDLINE python train.py\n":       "as mprof writes it, which has no stacks",
		"\n\x15\x12\x09/host:CPU\x1a\x02": "a trace of XLA's profiler",
		`{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M"}]}`: "a trace of time",
		`[[-1, 0, [100, 2]], [1750000000, 1, [64, 3]]]`:                                         "torch.profiler's memory timeline",
	} {
		path := filepath.Join(t.TempDir(), "snapshot_50")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
			continue
		}
		var format *snapshot.FormatError
		if !errors.As(err, &format) || format.Hint == "" {
			t.Errorf("%q has no hint", want)
		}
	}
}
