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

// TestWhatTheGateSaysOfATreeIsToldFromWhatIsWrong asks bench/tree.py about texts of the gate.
func TestWhatTheGateSaysOfATreeIsToldFromWhatIsWrong(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python here")
	}
	const asks = `import sys
sys.path.insert(0, "../../bench")
import tree
where, = [line for line in tree.lines_of("orphan")]
def said(process, place=where):
    return "1 leak: +32 MiB/second allocated %sat /a/bench/tree/%s; +26 MiB\n  Held by: list ` + "`keep.<locals>.kept`" + ` (2,082 items)" % (process, place)
for name, text, want in [
    ("orphan", said("in trees.py 2 "), True), ("orphan", said(""), False), ("orphan", said("in sh "), False), ("orphan", said("in trees.py 2 ", where + "0"), False),
    ("daemon", said(""), True), ("daemon", said("in keep 1 "), False),
    ("spawned", said("in keep 1 "), True), ("spawned", said("in keep 10 "), False), ("spawned", said("in keep 1 (2 of 3 such processes) "), True),
    ("own_signal", said("in keep 1 "), False), ("no_python", said("in perl "), False),
]:
    if tree.right(name, 1, text) != want:
        print(name, text, want)
`
	if out, err := exec.Command(python, "-B", "-c", asks).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
