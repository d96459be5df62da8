package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/memdiag/memdiag/record/recordtest"
)

// TestCIExamplesRun runs the lines with the gate of the examples for GitHub and
// GitLab on a program that leaks: the gate fails, and the files are there.
func TestCIExamplesRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	type step struct {
		Uses, Shell, Run string
		Env, With        map[string]string
	}
	var action struct{ Runs struct{ Steps []step } }
	read(t, "action.yml", &action)
	var script string
	for _, s := range action.Runs.Steps {
		if s.Uses == "" && s.Shell != "bash" {
			t.Errorf("a step of a composite action needs its shell: %q", s.Run)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("an input is written into a script: %q", s.Run)
		}
		// The action that installs a release does not know its own tag in another action.
		if action, tag, _ := strings.Cut(s.Uses, "@"); action == "memdiag/memdiag/release/action" && s.With["version"] != tag {
			t.Errorf("installs %q, want %q", s.With["version"], tag)
		}
		if strings.Contains(s.Run, "memdiag gate") {
			script = s.Run
		}
	}
	var template map[string]struct{ Script []string }
	read(t, "gitlab.yml", &template)
	for _, c := range []struct {
		name, script string
		files        []string
	}{
		{"GitHub", script, []string{"summary.md", "memdiag.sarif", "memdiag-run/run.json"}},
		{"GitLab", strings.Join(template[".memdiag-gate"].Script, "\n"), []string{"memdiag.xml", "memdiag.json", "memdiag-run/run.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := recordtest.Command(t, "bash", "-e", "-c", c.script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(cmd.Env, "RUNNER_TEMP="+cmd.Dir, "CI_PROJECT_DIR="+cmd.Dir, "GITHUB_STEP_SUMMARY="+filepath.Join(cmd.Dir, "summary.md"), "COMMAND=python3 train.py", "FLAGS=--every 10 --python-heap on --bound 'no one.py:step=10 blocks'")
			if err := os.WriteFile(filepath.Join(cmd.Dir, "train.py"), []byte(leaking), 0o666); err != nil {
				t.Fatal(err)
			}
			said, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitLeak {
				t.Errorf("want code %d, got %v: %s", exitLeak, err, said)
			}
			if !strings.Contains(string(said), "held by, no one.py:step;") {
				t.Errorf("a quoted flag came apart: %s", said)
			}
			for _, name := range c.files {
				if _, err := os.Stat(filepath.Join(cmd.Dir, name)); err != nil {
					t.Errorf("%v; %s", err, said)
				}
			}
		})
	}
}

// leaking keeps 200 KiB in each of its steps.
const leaking = `
from memdiag import mark

kept = []
for step in range(1, 121):
    kept.append([bytearray(4096) for _ in range(50)])
    mark(step=step)
`

// read reads an example for CI.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../examples/ci/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
