//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestResultKeepsPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that neither side waits for the other.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	env, _, _ := newTestEnvironment()
	if err := env.result(path, false, writes("data", nil)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if n, err := pipe.Read(got); err != nil || string(got[:n]) != "data" {
		t.Errorf("through the pipe: %q, %v", got[:n], err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Error("the pipe was replaced by a file")
	}
}
