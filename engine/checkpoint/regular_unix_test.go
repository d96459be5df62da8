//go:build unix

package checkpoint_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/memdiag/memdiag/engine/checkpoint"
)

// To open a pipe once waited for ever.
func TestAPipeIsNoCheckpoint(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "checkpoint_1"+checkpoint.Ending)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := checkpoint.Read(pipe); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}
