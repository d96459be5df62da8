package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFullDiskLeavesNothingOfAFleetThatDidNotBegin(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(disk, "other"), []byte("all room"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(disk, "fleet")
	if err := Init(dir); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
