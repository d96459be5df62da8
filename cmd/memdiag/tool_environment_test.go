package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record/recordtest"
)

// TestPythonIsTheUsersUnderUvx records with a memdiag that lies in an environment of its own in uv's cache, first on
// PATH, whose python is not the user's.
func TestPythonIsTheUsersUnderUvx(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts of a shell stand for python")
	}
	program, err := exec.LookPath("memdiag") // TestMain puts it on PATH
	if err != nil {
		t.Fatal(err)
	}
	const tools = "to[o]l" // no pattern
	for _, c := range []struct {
		name, packages       string
		cached, venv, active bool
		want                 string
	}{
		{"memdiag is alone", "memdiag-1.2.3.dist-info", true, true, false, "the user's"},
		{"it has a library, too", "memdiag-1.2.3.dist-info torch-2.15.0.dist-info", true, true, false, "the tool's"},
		{"it is active", "memdiag-1.2.3.dist-info", true, true, true, "the tool's"},
		{"it is no environment", "memdiag-1.2.3.dist-info", true, false, false, "the tool's"},
		{"another package is alone", "torch-2.15.0.dist-info", true, true, false, "the tool's"},
		{"the user made it, without pip", "memdiag-1.2.3.dist-info", false, true, false, "the tool's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tool, user := filepath.Join(dir, "uv", "archive-v0", tools), filepath.Join(dir, "user")
			for whose, folder := range map[string]string{"the tool's": filepath.Join(tool, "bin"), "the user's": user} {
				if err := os.MkdirAll(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, "python"), []byte("#!/bin/sh\necho "+strings.ReplaceAll(whose, "'", `\'`)+"\nmemdiag version >/dev/null || echo no memdiag\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name := range strings.FieldsSeq(c.packages) {
				if err := os.MkdirAll(filepath.Join(tool, "lib", "python3.11", "site-packages", name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.cached {
				if err := os.WriteFile(filepath.Join(dir, "uv", "CACHEDIR.TAG"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.venv {
				if err := os.WriteFile(filepath.Join(tool, "pyvenv.cfg"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Link(program, filepath.Join(tool, "bin", "memdiag")); err != nil {
				text, read := os.ReadFile(program)
				if write := os.WriteFile(filepath.Join(tool, "bin", "memdiag"), text, 0o700); read != nil || write != nil {
					t.Fatal(err, read, write)
				}
			}
			script := filepath.Join(dir, "train.py")
			if err := os.WriteFile(script, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := recordtest.Command(t, filepath.Join(tool, "bin", "memdiag"), "record", "-o", filepath.Join(dir, "run"), "--", "python", script)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Join(tool, "bin")+":"+user+":/usr/bin:/bin")
			if c.active {
				cmd.Env = append(cmd.Env, "VIRTUAL_ENV="+tool)
			}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.want+"\n") || strings.Contains(string(out), "no memdiag") ||
				strings.Contains(string(out), "not from memdiag's own environment") != (c.want == "the user's") {
				t.Errorf("%v: want %q in %s", err, c.want, out)
			}
		})
	}
}
