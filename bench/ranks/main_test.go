package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestThereAreNoMoreSnapshotsThanSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := run([]string{dir, "1", "202"}); err == nil {
		t.Error("202 snapshots of 200 steps")
	}
	if err := run([]string{dir, "1", "201"}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 202 { // one is the run's info
		t.Errorf("%d files, %v", len(entries), err)
	}
}
