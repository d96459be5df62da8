//go:build unix

package files

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
