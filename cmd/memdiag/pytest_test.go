package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"

	"github.com/memdiag/memdiag/record/recordtest"
)

// TestMarkedTestsEndAsTheirNamesSay runs testdata/pytest under the plugin: what a test
// is called begins with its fate.
func TestMarkedTestsEndAsTheirNamesSay(t *testing.T) {
	for _, c := range []struct {
		name, needs, file string
		said              []string
		tests             int
	}{
		{"steps that a test marks", "import pytest", "test_marked.py", []string{"memdiag gate: 1 leak: ", "the test made no step that memdiag sees"}, 11},
		{"steps of PyTorch's optimizers", "import pytest, torch", "test_torch.py", []string{"test_torch.py:12"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			cmd := recordtest.Command(t, python, "-m", "pytest", "-p", "memdiag.pytest", "-o", "cache_dir="+t.TempDir(), "--junitxml", results, c.file)
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
			for _, want := range c.said {
				if !strings.Contains(string(said), want) {
					t.Errorf("want %q in %s", want, said)
				}
			}
		})
	}
}
