package record_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/record"
)

// TestOnATinyDiskTwoSnapshotsOfACommandStay mounts a disk of five pages: what says how
// the command ran, and three snapshots.
func TestOnATinyDiskTwoSnapshotsOfACommandStay(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=20k"); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("RECORD_TEST_GROW", "1")
	r := runInto(t, filepath.Join(dir, "run"), record.Options{}, self)
	if r.ExitCode != 0 || r.Snapshots != 2 || !r.noted("no space left on device") {
		t.Errorf("%+v", r.Outcome)
	}
}
