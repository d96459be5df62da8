//go:build unix

package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
)

// written tells whether Python may write what it compiles of the program, and has of the agent.
const written = `
import os, sys
from memdiag import _agent
print(sys.dont_write_bytecode, os.path.exists(_agent.__spec__.cached))
`

// Python compiles the agent once: what it made is there for the next run, even where it is to write none of the program's.
func TestTheAgentIsCompiledOnce(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	run := func() string {
		r := runInto(t, t.TempDir(), record.Options{}, python(t), "-c", written)
		if text := strings.TrimSpace(r.stdout); text != "True True" {
			t.Errorf("the program may write bytecode, or the agent has none: %q", text)
		}
		kept, err := filepath.Glob(filepath.Join(cache, "memdiag", "python-*", "memdiag", "__pycache__", "_agent.*.pyc"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("in the cache: %v, %v", kept, err)
		}
		return kept[0]
	}
	name := run()
	code, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	marked := string(code) + "x" // which Python does not read
	if err := os.WriteFile(name, []byte(marked), 0o600); err != nil {
		t.Fatal(err)
	}
	run()
	if code, err := os.ReadFile(name); err != nil || string(code) != marked {
		t.Errorf("the second run compiled it again: %v", err)
	}
	if err := os.WriteFile(name, code[:len(code)/2], 0o600); err != nil { // as on a full disk
		t.Fatal(err)
	}
	run()
	if again, err := os.ReadFile(name); err != nil || len(again) < len(code)*9/10 { // compiled anew it may differ
		t.Errorf("a broken file is not replaced: %v, %d bytes of %d", err, len(again), len(code))
	}
}
