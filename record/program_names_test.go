//go:build unix

package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// A program with a memdiag.py of its own got the agent's package when it imported that.
func TestAModuleOfTheProgramNamedMemdiagStaysItsOwn(t *testing.T) {
	t.Parallel()
	const mine = "def mine(x=0):\n    return x + 1\n"
	const program = "import sys, memdiag\nif __name__ == '__main__':\n    print(memdiag.mine(), [m for m in sys.modules if m.startswith('memdiag.')])\n"
	const spawns = "import multiprocessing, memdiag\nif __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as p:\n        print(p.map(memdiag.mine, [1]))\n"
	for _, c := range []struct {
		name, module, program, out string
		command                    []string // beside Python, in the folder above
	}{
		{"a script beside a module", "memdiag.py", program, "1 []\n", []string{"folder/program.py"}},
		{"a script beside a package", "memdiag/__init__.py", program, "1 []\n", []string{"folder/program.py"}},
		{"a module of the current folder", "../memdiag.py", program, "1 []\n", []string{"-m", "folder.program"}},
		{"a process that is spawned in another folder", "memdiag.py", spawns, "[2]\n", []string{"folder/program.py"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{c.module: mine, "program.py": c.program} {
				path := filepath.Join(dir, "folder", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r := runOf(t, record.Options{}, append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir, python(t)}, c.command...)...)
			if r.ExitCode != 0 || r.stdout != c.out || r.stderr != "" || strings.Contains(strings.Join(r.Notes, " "), "agent") {
				t.Errorf("%+v, %q, %q, %q", r.Outcome, r.stdout, r.stderr, r.Notes)
			}
		})
	}
}

// A random.py in the current folder was imported by Python's own email, which importlib.metadata imports.
func TestTheCommandOfAPackageImportsNothingOfTheCurrentFolder(t *testing.T) {
	t.Parallel()
	folder, err := record.Package(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	for _, name := range []string{"json", "random", "shutil", "string"} {
		if err := os.WriteFile(filepath.Join(here, name+".py"), []byte("raise SystemExit('not Python\\'s own')"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	command := recordtest.Command(t, python(t), "-m", "memdiag", "version")
	command.Dir, command.Env = here, append(os.Environ(), "PYTHONPATH="+folder, "MEMDIAG=")
	out, _ := command.CombinedOutput() // the program may be missing
	if !strings.HasPrefix(string(out), "memdiag") {
		t.Errorf("it said %s", out)
	}
}

// mocked calls functions that tests often replace while the agent's thread wakes some times.
const mocked = `
import time
from unittest import mock

def busy():
    return sum(range(4_000_000))

busy()
with mock.patch("time.sleep") as sleep, mock.patch("time.monotonic", side_effect=[1, 2, 3]), mock.patch("time.time", side_effect=[4]):
    busy()
    time.sleep(100)
    print(sleep.mock_calls, time.monotonic(), time.monotonic(), time.monotonic(), time.time())
with mock.patch("builtins.open", mock.mock_open()) as opened, mock.patch("os.path.exists") as exists, mock.patch("os.getpid") as pid:
    for _ in range(6):
        busy()
    print(opened.mock_calls, exists.mock_calls, pid.mock_calls)
`

// A test of the program's failed only under the recorder, since its mocks saw the agent's calls.
func TestMocksOfTheProgramSeeNoCallOfTheAgent(t *testing.T) {
	heavytest.Skip(t, "a program that traces for 7 s")
	t.Parallel()
	r := runOf(t, record.Options{}, python(t), script(t, mocked))
	if r.stdout != "[call(100)] 1 2 3 4\n[] [] []\n" || r.stderr != "" || r.ExitCode != 0 {
		t.Errorf("code %d, %q, %q", r.ExitCode, r.stdout, r.stderr)
	}
}
