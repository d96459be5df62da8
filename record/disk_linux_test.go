package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
)

// TestOnATinyDiskTwoSnapshotsOfACommandStay mounts a disk of five pages: what says how
// the command ran, and three snapshots.
func TestOnATinyDiskTwoSnapshotsOfACommandStay(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := disk(t, "20k")
	t.Setenv("RECORD_TEST_GROW", "1")
	r := runInto(t, dir, record.Options{}, self)
	full := func(u snapshot.Unseen) bool { return strings.Contains(u.What, "no space left on device") }
	if r.ExitCode != 0 || r.Snapshots != 2 || !slices.ContainsFunc(r.Unseen, full) {
		t.Errorf("%+v", r.Outcome)
	}
}

func TestAnAgentThatHasNoRoomForItsReportWasThere(t *testing.T) {
	dir := disk(t, "4k")
	r := runInto(t, dir, record.Options{}, python(t), "-c", "print(1)")
	if r.ExitCode != 0 || r.stdout != "1\n" || !r.noted("could not write its report") || r.noted("no Python process") {
		t.Errorf("%+v", r.Outcome)
	}
}

// disk mounts one of a size, and returns where a run on it is to be.
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "run")
}
