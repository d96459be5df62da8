//go:build unix

package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/snapshot/rundir"
)

func TestAPipeIsRefusedAndNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "snapshot_1.pickle")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
	write(t, dir, "snapshot_0.json", torchJSON(0))
	if run, err := OpenRun(dir); err != nil || len(run.Snapshots) != 1 {
		t.Errorf("a run beside it: %v", err)
	}
}

func TestARunOfPipesIsNotWaitedFor(t *testing.T) {
	for _, name := range []string{rundir.InfoName, rundir.SeriesName} {
		t.Run(name, func(t *testing.T) {
			dir := newRun(t, filepath.Join(t.TempDir(), "run"), noon, 0, 50)
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o666); err != nil {
				t.Fatal(err)
			}
			run, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(run.Snapshots) != 2 || len(run.Notes) != 1 || !strings.Contains(run.Notes[0], name+": not a regular file") {
				t.Errorf("%d snapshots, notes %q", len(run.Snapshots), run.Notes)
			}
		})
	}
}

func TestASnapshotThatIsAPipeIsSaidToBeLeftOut(t *testing.T) {
	dir := newRun(t, filepath.Join(t.TempDir(), "run"), noon, 0, 50)
	if err := syscall.Mkfifo(filepath.Join(dir, "snapshot_60_rank1.memdiag"), 0o666); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Snapshots) != 2 || len(run.Notes) != 1 || !strings.Contains(run.Notes[0], "snapshot_60_rank1.memdiag") {
		t.Errorf("%d snapshots, notes %q", len(run.Snapshots), run.Notes)
	}
}

func TestAPipeIsNotSaidToBeMissing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, resolve := range map[string]func(name, dir string) (string, error){"a snapshot": Resolve, "a run": ResolveRun} {
		if _, err := resolve("p", dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestALinkToNothingIsSaidToBeOne(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"dead": "gone.pickle", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for what, resolve := range map[string]func(name, dir string) (string, error){"a snapshot": Resolve, "a run": ResolveRun} {
		for name, want := range map[string]string{"dead": "dead: a link to gone.pickle, which is not there", "loop": "loop: a link that cannot be followed: too many levels of symbolic links"} {
			if _, err := resolve(name, dir); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", what, err, want)
			}
		}
	}
}

func TestAFileWithoutASizeIsNotSaidToBeEmpty(t *testing.T) {
	const path = "/proc/self/status"
	if _, err := os.Stat(path); err != nil {
		t.Skip("this system has no /proc")
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "a file without a size") {
		t.Errorf("got %v", err)
	}
}
