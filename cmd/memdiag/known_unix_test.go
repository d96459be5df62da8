//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestAPipeInThePlaceOfKnownLeaksIsNotWaitedFor: nobody has named it.
func TestAPipeInThePlaceOfKnownLeaksIsNotWaitedFor(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(".memdiag", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(teamsKnown, 0o600); err != nil {
		t.Fatal(err)
	}
	env, _, _ := newTestEnvironment()
	if _, err := env.library(); err == nil || !strings.Contains(err.Error(), "known.yml: no regular file") {
		t.Errorf("%v", err)
	}
}
