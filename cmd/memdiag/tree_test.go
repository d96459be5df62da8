package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestTreesOfProcessesAreGated is a part of bench/tree.py that needs no PyTorch.
func TestTreesOfProcessesAreGated(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python here")
	}
	heavytest.Skip(t, "trees of processes that run for 15 s each")
	for _, c := range []struct {
		tree string
		code int
		want string
	}{
		{"spawned", exitLeak, "allocated in keep 1 at "},
		{"no_python", exitInconclusive, "perl grows, +"},
		{"copy_on_write", exitFine, "no leak found"},
		{"many_children", exitFine, "no leak found"},
	} {
		t.Run(c.tree, func(t *testing.T) {
			t.Parallel()
			r := recordProgram(t, []string{"gate"}, python, "../../bench/tree/trees.py", c.tree, "15")
			if r.code != c.code || !strings.Contains(r.stdout, c.want) {
				t.Errorf("exit code %d, want %d with %q: %s", r.code, c.code, c.want, r.stdout)
			}
		})
	}
}
