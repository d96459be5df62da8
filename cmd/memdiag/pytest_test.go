package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"

	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestMarkedTestsEndAsTheirNamesSay runs testdata/pytest under the plugin: what a test
// is called begins with its fate.
func TestMarkedTestsEndAsTheirNamesSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, needs, file string
		said              []string
		tests             int
		kept              int // runs of tests that the gate failed, or that were killed
	}{
		{"steps that a test marks", "import pytest", "test_marked.py", []string{
			"memdiag gate: 1 leak: ", "the test made no step that memdiag sees",
			"Held by: list `test_marked.kept` (100 items)", "Cause: a container that only grows", "Fix: ", "If it leaks: ",
			"memdiag gate ended with code 5 before the test did:", "2 xfailed", "[XPASS(strict)]",
		}, 14, 4},
		{"steps of PyTorch's optimizers", "import pytest, torch", "test_torch.py", []string{"test_torch.py:12", "Held by: list"}, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file == "test_torch.py" {
				heavytest.Skip(t, "tests that train with PyTorch, each in a process of its own")
			}
			t.Parallel()
			python := pythonOf(t, "torch", c.needs)
			program, err := exec.LookPath("memdiag") // TestMain puts it on PATH
			if err != nil {
				t.Fatal(err)
			}
			environment := []string{
				"MEMDIAG=" + program,
				"XDG_CACHE_HOME=" + t.TempDir(),
				"PYTHONDONTWRITEBYTECODE=1", // into the repository
				"PYTEST_ADDOPTS=--ff",       // which the process of a marked test has, too
			}
			path := recordtest.Command(t, program, "python-path")
			path.Env = append(path.Env, environment...)
			agent, err := path.Output()
			if err != nil {
				t.Fatal(err)
			}
			results := filepath.Join(t.TempDir(), "results.xml")
			temporary := filepath.Join(t.TempDir(), "pytest")
			cmd := recordtest.Command(t, python, "-m", "pytest", "--basetemp", temporary, "-p", "memdiag.pytest", "-o", "cache_dir="+t.TempDir(), "--junitxml", results, c.file)
			cmd.Dir = "../../testdata/pytest"
			cmd.Env = append(append(cmd.Env, environment...), "PYTHONPATH="+strings.TrimSpace(string(agent)))
			said, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("pytest found no failure")
			}
			suites, err := junit.IngestFile(results)
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if n := suites[0].Totals.Tests; n != c.tests {
				t.Errorf("%d tests, want %d", n, c.tests)
			}
			prefix := map[junit.Status]string{junit.StatusPassed: "test_passes_", junit.StatusFailed: "test_fails_", junit.StatusSkipped: "test_skips_"}
			for _, test := range suites[0].Tests {
				if p := prefix[test.Status]; p == "" || !strings.HasPrefix(test.Name, p) {
					t.Errorf("%s is %s: %s", test.Name, test.Status, said)
				}
			}
			if folders, err := os.ReadDir(temporary); err != nil || len(folders) != c.kept {
				t.Errorf("%v: %d folders are left, want %d: %v", err, len(folders), c.kept, folders)
			}
			for _, named := range regexp.MustCompile(`The run is kept: memdiag diff (\S+)`).FindAllSubmatch(said, -1) {
				if out, err := recordtest.Command(t, program, "diff", string(named[1])).CombinedOutput(); err != nil || !strings.Contains(string(out), "Held by: list") {
					t.Errorf("%s: %v: %s", named[1], err, out)
				}
			}
			for _, named := range regexp.MustCompile(`hint: memdiag gate (\S+) judges what was recorded so far`).FindAllSubmatch(said, -1) {
				if _, err := os.Stat(string(named[1])); err != nil {
					t.Errorf("a hint names a folder that is gone: %v", err)
				}
			}
			for _, want := range append(c.said, "The run is kept: memdiag diff "+temporary) {
				if !strings.Contains(string(said), want) {
					t.Errorf("want %q in %s", want, said)
				}
			}
		})
	}
}
