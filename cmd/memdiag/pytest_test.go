//go:build !race

// What is recorded is a Python process; the race detector would not see it.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
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
			if testing.Short() {
				t.Skip("each test is a process")
			}
			python := pythonWith(t, c.needs)
			program, err := exec.LookPath("memdiag") // TestMain puts it on PATH
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("MEMDIAG", program)
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("PYTHONDONTWRITEBYTECODE", "1") // into the repository
			var path bytes.Buffer
			if code := run([]string{"python-path"}, nil, &path, &path); code != exitFine {
				t.Fatalf("exit code %d: %s", code, &path)
			}
			t.Setenv("PYTHONPATH", strings.TrimSpace(path.String()))
			t.Setenv("PYTEST_ADDOPTS", "--ff") // which the process of a marked test has, too
			results := filepath.Join(t.TempDir(), "results.xml")
			cmd := exec.Command(python, "-m", "pytest", "-p", "memdiag.pytest", "-o", "cache_dir="+t.TempDir(), "--junitxml", results, c.file)
			cmd.Dir = "../../testdata/pytest"
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

// pythonWith is a Python in which a line of imports works.
func pythonWith(t *testing.T, imports string) string {
	t.Helper()
	candidates := []string{os.Getenv("MEMDIAG_TORCH_PYTHON"), "python3"}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(cache, "memdiag", "torch", "bin", "python"))
	}
	for _, python := range candidates {
		if python != "" && exec.Command(python, "-c", imports).Run() == nil {
			return python
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no Python here that can %s; .ci/run installs it", imports)
	}
	t.Skipf("no Python here that can %s; make torch installs it beside the repository", imports)
	return ""
}
