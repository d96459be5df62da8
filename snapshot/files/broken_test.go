package files

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// fixtures are the small files in the repository, of every format.
func fixtures(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../../testdata/profilers/*_*.*", "../torch/testdata/*.*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range paths {
			if ending := filepath.Ext(path); ending != ".py" && ending != ".go" && ending != ".sh" && !strings.Contains(path, "big_lists") {
				out = append(out, path)
			}
		}
	}
	return out
}

// TestBrokenFilesAreReadOrRefusedInOneLine cuts every fixture at many places, and
// flips bits of it. What is left is a snapshot, or an error of the file.
func TestBrokenFilesAreReadOrRefusedInOneLine(t *testing.T) {
	times := 20
	if testing.Short() {
		times = 6
	}
	random := rand.New(rand.NewPCG(1, 2))
	broken := filepath.Join(t.TempDir(), "broken")
	check := func(t *testing.T, data []byte) {
		if err := os.WriteFile(broken, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(broken)
		var format *snapshot.FormatError
		switch {
		case err == nil && s == nil:
			t.Fatal("neither snapshot nor error")
		case err != nil && (!errors.As(err, &format) || strings.ContainsAny(err.Error()+format.Hint, "\n\r\x1b")):
			t.Fatalf("%T: %v", err, err)
		}
	}
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range times {
				check(t, data[:len(data)*i/times])
				flipped := append([]byte(nil), data...)
				for range 1 + i%4 {
					flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
				}
				check(t, flipped)
				// A piece of the file in a place where another belongs.
				at, from := random.IntN(len(data)), random.IntN(len(data))
				check(t, append(append([]byte(nil), data[:at]...), data[from:]...))
			}
		})
	}
}

func TestARunSaysWhichFilesNamedAsItsSnapshotsAreNone(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile("../torch/testdata/full_protocol4.pickle")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"dump_10.pickle": whole, "dump_20.pickle": whole, "dump_30.pickle": []byte("x"), "train.py": []byte("x"), "losses_30.pickle": []byte("x")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "dump_30.pickle") + ": not a snapshot in a format that memdiag reads; left out"
	if len(run.Unread) != 1 || run.Unread[0] != want || !run.Partial {
		t.Errorf("%q, want %q", run.Unread, want)
	}
}
