//go:build unix

package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func TestTheAgentIsCompiledOnceForManyRecordings(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // of macOS
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	program := script(t, `
import os, sys
agent = sys.modules["memdiag._agent"]
code = agent.__cached__
if not os.path.exists(code):
    print("not compiled")
    sys.exit()
print(os.path.realpath(code), os.stat(code).st_mtime_ns, agent.Agent.start.__code__.co_filename == agent.__file__, sys.dont_write_bytecode)
`)
	first := strings.Fields(outputOf(t, python(t), program))
	second := strings.Fields(outputOf(t, python(t), program))
	if len(first) != 4 || !strings.HasPrefix(first[0], cache) || first[2] != "True" || first[3] != "True" {
		t.Fatalf("compiled below %s: %q", cache, first)
	}
	if len(second) != 4 || second[0] != first[0] || second[1] != first[1] {
		t.Errorf("compiled again: %q, at first %q", second, first)
	}
	folders, err := filepath.Glob(filepath.Join(cache, "memdiag", "compiled-*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	if err := os.Chmod(folders[0], 0o777); err != nil { //nolint:gosec // others may write there
		t.Fatal(err)
	}
	if third := strings.Fields(outputOf(t, python(t), program)); len(third) != 4 || strings.HasPrefix(third[0], cache) {
		t.Errorf("loaded from where others may write: %q", third)
	}
}

// outputOf returns what a command prints while it is recorded.
func outputOf(t *testing.T, command ...string) string {
	t.Helper()
	var out strings.Builder
	to, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
	if err == nil {
		_, err = record.Run(t.Context(), to, record.Command{Args: command, Stdout: &out, Stderr: os.Stderr}, record.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
