package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/gpu"
)

// TestALeakIsFoundOnAGPU records one there and judges the run.
func TestALeakIsFoundOnAGPU(t *testing.T) {
	if infos, err := gpu.List(); err != nil || infos[0].Unusable != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no GPU: %v", err)
		}
		t.Skipf("no GPU: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	command := func(want int, args ...string) string {
		t.Helper()
		var out, talk bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &talk); code != want {
			t.Fatalf("memdiag %s ended with %d, not %d:\n%s", strings.Join(args, " "), code, want, &talk)
		}
		return out.String()
	}
	command(exitFine, "record", "--workload", "L31", "--backend", "gpu", "--steps", "60", "--every", "20", "--out", dir)
	if said := command(exitLeak, "gate", dir); !strings.Contains(said, "1 leak: ") || !strings.Contains(said, "engine/workload/") {
		t.Errorf("gate says %s", said)
	}
	if said := command(exitFine, "show", filepath.Join(dir, "snapshot_60")); !strings.Contains(said, "vulkan") {
		t.Errorf("show does not name the device:\n%s", said)
	}
}
