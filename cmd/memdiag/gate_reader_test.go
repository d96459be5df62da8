package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A gate in a pipe of which nobody reads the end, such as memdiag gate | head -1.
func TestALeakFailsThoughNobodyReadsOn(t *testing.T) {
	dir := t.TempDir()
	leaky := filepath.Join(dir, "leaky")
	execute := func(unread bool, args ...string) int {
		env, _, _ := newTestEnvironment()
		if unread {
			env.stdout.w = failingWriter{syscall.EPIPE}
		}
		return env.conclude(t.Context(), env.execute(t.Context(), args))
	}
	if code := execute(false, "record", "-w", "L30", "--steps", "20", "--every", "4", "-o", leaky); code != exitFine {
		t.Fatalf("record ends with %d", code)
	}
	written := filepath.Join(dir, "gate.json")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"the sentence is not read", []string{"gate", leaky, "--json", written}},
		{"a file on standard output is not read", []string{"gate", leaky, "--json", "-", "--junit", written}},
		{"annotations are not read", []string{"gate", leaky, "--annotations", "github", "--json", written}},
		{"a fix that did not work", []string{"verify", leaky, leaky}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = os.Remove(written)
			if code := execute(true, c.args...); code != exitLeak {
				t.Errorf("exit code %d, want %d", code, exitLeak)
			}
			if _, err := os.Stat(written); c.args[0] == "gate" && err != nil {
				t.Error("the file that was asked for is not written:", err)
			}
		})
	}
}
