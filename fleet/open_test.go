package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// Runs are merged and added anew while others ask: each answer is of a whole state. A writer waits for an answer after each
// round, so that a slow reader does not lose all its tries.
func TestAnswersAreWholeWhileOthersMergeAndAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	var writers sync.WaitGroup
	var writing atomic.Int32
	answered := make(chan bool)
	for i := range two {
		writing.Add(1)
		writers.Go(func() {
			defer writing.Add(-1)
			for range 5 {
				if _, err := Compact(dir, epoch); err != nil {
					t.Error(err)
				}
				if _, err := Add(dir, two[i].tables()); err != nil {
					t.Error(err)
				}
				<-answered
			}
		})
	}
	for writing.Load() > 0 {
		err := Again(func() error {
			s, err := OpenStore(dir)
			if err != nil {
				return err
			}
			got, err := asText(s)
			if err == nil && got != ofTwo {
				t.Errorf("an answer of half a state:\n%s", got)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for range two {
			select {
			case answered <- true:
			default:
			}
		}
	}
	writers.Wait()
	if got := summary(t, opened(t, dir)); got != ofTwo {
		t.Errorf("a run is lost:\n%s", got)
	}
}

func TestATableThatMovedIsToldFromOneThatIsDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	s := opened(t, dir)
	added(t, dir, two[0]) // another version in its place
	if _, err := s.Leaks(nil); !errors.As(err, new(*MovedError)) {
		t.Errorf("of a run that was replaced: %v", err)
	}
	s = opened(t, dir)
	if err := os.RemoveAll(s.Parts[1].dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Leaks(nil); !errors.As(err, new(*MovedError)) {
		t.Errorf("of a run that was deleted: %v", err)
	}
	s = opened(t, dir)
	remove(t, s.Parts[0].file("findings"))
	if _, err := s.Leaks(nil); !errors.As(err, new(*parquet.FormatError)) || errors.As(err, new(*MovedError)) {
		t.Errorf("of a run without a table: %v", err)
	}
	remove(t, s.Parts[0].file("runs"))
	if _, err := OpenStore(dir); !errors.As(err, new(*parquet.FormatError)) || !strings.Contains(err.Error(), s.Parts[0].file("runs")) {
		t.Errorf("of a run without the table of runs: %v", err)
	}
}

// TestARunThatIsCopiedFileByFileIsThereWholeOrAnError, as by a program that copies a bucket. What has no part in a question may be missing.
func TestARunThatIsCopiedFileByFileIsThereWholeOrAnError(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "fleet"), filepath.Join(t.TempDir(), "fleet")
	added(t, from, two...)
	added(t, to, two[0])
	place := filepath.Join("2026-03-04", two[1].id)
	if err := os.Mkdir(filepath.Join(to, place), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(from, place))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range files {
		got := ""
		s, err := OpenStore(to)
		if err == nil {
			got, err = asText(s)
		}
		if broken := (*parquet.FormatError)(nil); !errors.As(err, &broken) && got != ofTwo {
			t.Errorf("%d of %d files: %v\n%s", i, len(files), err, got)
		}
		data, err := os.ReadFile(filepath.Join(from, place, name.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, place, name.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := summary(t, opened(t, to)); got != ofTwo {
		t.Errorf("got\n%s\nwant\n%s", got, ofTwo)
	}
}

func TestAPipeInAFleetIsNotWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two[0])
	for _, path := range []string{opened(t, dir).Parts[0].file("runs"), filepath.Join(dir, markName)} {
		remove(t, path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStore(dir); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

func TestADayThatIsALinkToAFolderIsRead(t *testing.T) {
	dir, elsewhere := filepath.Join(t.TempDir(), "fleet"), filepath.Join(t.TempDir(), "day")
	added(t, dir, two...)
	day := filepath.Join(dir, opened(t, dir).Parts[0].Day)
	if err := errors.Join(os.Rename(day, elsewhere), os.Symlink(elsewhere, day), os.Symlink(day+"x", day+"x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := summary(t, opened(t, dir)); got != ofTwo {
			t.Errorf("got\n%s", got)
		}
		added(t, dir, two...)
	}
}
