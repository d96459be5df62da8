//go:build unix

package record_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// TestMain plays memdiag, when a test starts it so, to be killed or signalled.
func TestMain(m *testing.M) {
	if record.Witness() {
		return
	}
	if os.Getenv("RECORD_TEST_GROW") != "" {
		grow()
	}
	if dir := os.Getenv("RECORD_TEST_DIR"); dir != "" {
		_ = os.Unsetenv("RECORD_TEST_DIR")
		out, err := rundir.Create(dir, snapshot.Info{})
		if err != nil {
			panic(err)
		}
		command := record.Command{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		outcome, err := record.Run(context.Background(), out, command, record.Options{Witness: true})
		if err != nil {
			panic(err)
		}
		os.Exit(outcome.ExitCode)
	}
	_ = os.Setenv("PYTHONFAULTHANDLER", "1") // of what hangs, and is aborted, Python tells the threads
	os.Exit(m.Run())
}

// python is a Python to test with.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Python 3.11 or later:", err)
		}
		t.Skip("no Python 3.11 or later here")
	}
	return path
}

// script writes a Python script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded is what came of a command.
type recorded struct {
	*record.Outcome
	dir            string
	stdout, stderr string
}

func (r *recorded) noted(what string) bool {
	return slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, what) })
}

func runOf(t *testing.T, opts record.Options, args ...string) *recorded {
	t.Helper()
	return runInto(t, filepath.Join(t.TempDir(), "run"), opts, args...)
}

func runInto(t *testing.T, dir string, opts record.Options, args ...string) *recorded {
	t.Helper()
	out, err := rundir.Create(dir, snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	recordtest.Bound(t, dir) // which is in the agent's settings
	var stdout, stderr bytes.Buffer
	outcome, err := record.Run(t.Context(), out, record.Command{Args: args, Stdout: &stdout, Stderr: &stderr}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &recorded{outcome, out.Dir(), stdout.String(), stderr.String()}
}

// leaky keeps a list of lists of numbers, slowly; n rounds.
const leaky = `
import sys, time
kept = []
for i in range(int(sys.argv[1])):
    kept.append([float(j + i) for j in range(200)])
    time.sleep(0.005)
print("done", len(kept))
`

func TestPythonIsRecordedByTheClock(t *testing.T) {
	path := script(t, leaky)
	r := runOf(t, record.Options{Interval: 100 * time.Millisecond}, python(t), path, "200")
	if r.ExitCode != 0 || r.stdout != "done 200\n" || r.stderr != "" || len(r.Notes) > 0 || r.Snapshots < 3 {
		t.Fatalf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
	}
	run, err := files.OpenRun(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	last := run.Snapshots[len(run.Snapshots)-1]
	if len(last.Holders) == 0 || last.Holders[0].Path != "__main__.kept" || last.Holders[0].Kind != "list" {
		t.Errorf("holders: %+v", last.Holders)
	}
	if d := last.Devices[0]; runtime.GOOS == "linux" && (d.Kind != snapshot.Process || d.Limit <= d.Meters.Driver) {
		t.Errorf("what the process may take is not told: %+v", d)
	}
	sites := last.Sites()
	if len(sites) == 0 {
		t.Fatal("no sites")
	}
	if f := last.Stacks.Frames(sites[0].Stack)[0]; f.File != path || f.Line != 5 {
		t.Errorf("the largest site is %v", f)
	}
	if len(last.At) != 1 || last.Stacks.Frames(last.At[0])[0].File != path {
		t.Errorf("the program is at %v", last.At)
	}
	host, err := os.ReadFile(filepath.Join(r.dir, "host.csv"))
	if err != nil || bytes.Count(host, []byte("\n")) < 2 {
		t.Errorf("the host's figures: %q, %v", host, err)
	}
	names, err := filepath.Glob(filepath.Join(r.dir, ".*"))
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

// TestTheTimesOfMarksAreOfAClockThatNobodySets: the program's is put back by an hour.
func TestTheTimesOfMarksAreOfAClockThatNobodySets(t *testing.T) {
	t.Parallel()
	r := runInto(t, filepath.Join(t.TempDir(), "run"), record.Options{Every: 10}, python(t), script(t, `
from memdiag import _real, mark
time = _real.time
wall = time.time, time.time_ns
for step in range(1, 101):
    if step == 50:
        time.time, time.time_ns = lambda: wall[0]() - 3600, lambda: wall[1]() - 3600 * 10**9
    mark(step=step)
`))
	run, err := files.OpenRun(r.dir)
	if err != nil || r.ExitCode != 0 || len(run.Snapshots) < 10 {
		t.Fatalf("%+v, %q, %v", r.Outcome, r.stderr, err)
	}
	for i, s := range run.Snapshots[1:] {
		if before := run.Snapshots[i].Mark; !s.Mark.Time.After(before.Time) {
			t.Errorf("step %d at %s, and before it step %d at %s", s.Mark.Step, s.Mark.Time, before.Step, before.Time)
		}
	}
}

// Hydra names folders so: memdiag's own snapshots stayed there beside the agent's, of another
// kind, and no verdict could be reached.
func TestAFolderOfAnyNameIsRecordedInto(t *testing.T) {
	interpreter, path := python(t), script(t, leaky)
	for _, name := range []string{"lr=[0.1,0.2]", `back\slash`, "[", "*?{}", "two\nlines", "not UTF-8 \xff", "-o", "%s", `"'`, "a:b"} {
		t.Run(strconv.QuoteToASCII(name), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Skip("no folder of this name can be made here:", err) // as on a Mac, of what is not UTF-8
			}
			r := runInto(t, dir, record.Options{Interval: 100 * time.Millisecond, PythonHeap: "off"}, interpreter, path, "100")
			if r.ExitCode != 0 || r.stderr != "" || len(r.Notes) > 0 {
				t.Errorf("%+v, %q", r.Outcome, r.stderr)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s may be read by others: %v, %v", e.Name(), info.Mode(), err)
				}
				if name := e.Name(); strings.HasPrefix(name, ".") || rundir.IsSnapshotName(name) && filepath.Ext(name) != ".json" {
					t.Errorf("%s is left behind", name)
				}
			}
			if _, err := files.OpenRun(dir); err != nil || r.Snapshots == 0 {
				t.Errorf("%d snapshots, %v", r.Snapshots, err)
			}
		})
	}
}

// TestTasksOfALauncherRecordIntoOneFolder has two memdiags at once, as srun and mpirun start
// them, of which one ends before the other.
func TestTasksOfALauncherRecordIntoOneFolder(t *testing.T) {
	path, dir := script(t, leaky), filepath.Join(t.TempDir(), "run")
	recordtest.Bound(t, dir)
	interpreter := python(t)
	var done sync.WaitGroup
	for rank, rounds := range []string{"100", "250"} {
		done.Go(func() {
			out, err := rundir.Create(dir, snapshot.Info{Rank: &rank})
			if err != nil {
				t.Error(err)
				return
			}
			var stdout, stderr bytes.Buffer
			o, err := record.Run(t.Context(), out, record.Command{Args: []string{interpreter, path, rounds}, Stdout: &stdout, Stderr: &stderr}, record.Options{})
			if err != nil || o.ExitCode != 0 || o.Snapshots < 3 || stderr.Len() > 0 {
				t.Errorf("rank %d: %v, %+v, %q", rank, err, o, &stderr)
			}
			if err := out.Finish(10+rank, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for rank := range 2 {
		run, err := files.OpenRank(dir, rank)
		if err != nil {
			t.Fatal(err)
		}
		if code := run.Info.ExitCode; len(run.Ranks) != 2 || run.Info.Rank == nil || *run.Info.Rank != rank || code == nil || *code != 10+rank || run.Partial {
			t.Errorf("rank %d: %+v, of ranks %v, partial %t: %q", rank, run.Info, run.Ranks, run.Partial, run.Notes)
		}
		if _, err := os.Stat(filepath.Join(dir, rundir.TableName("host", rank))); err != nil {
			t.Error(err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

// While a script imports, snapshots show what the import makes.
func TestSnapshotsOfAnImportGoWhenTheWorkBegins(t *testing.T) {
	const twoMore = `
import glob, os, time
began = time.time()
def newer(path):
    try:
        return os.path.getmtime(path) > began
    except FileNotFoundError:
        return False
while sum(map(newer, glob.glob(os.environ["AWAIT"]))) < 2:
    time.sleep(0.01)
`
	modules := t.TempDir()
	if err := os.WriteFile(filepath.Join(modules, "slow.py"), []byte(twoMore+"print(int(time.time() * 1e6))"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", modules)
	const work = `
kept = [[float(j) for j in range(1000)] for i in range(100)]
` + twoMore
	for _, c := range []struct {
		name, program string
		kept          bool
	}{
		{"they do where it begins behind the import", "import slow" + work, false},
		{"they stay where all work is in an import", "import slow, work", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(modules, "work.py"), []byte(work), 0o666); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "run")
			t.Setenv("AWAIT", filepath.Join(dir, "snapshot_*.json"))
			r := runInto(t, dir, record.Options{Interval: 100 * time.Millisecond}, python(t), script(t, c.program))
			began, err := strconv.ParseInt(strings.TrimSpace(r.stdout), 10, 64)
			if err != nil || r.ExitCode != 0 {
				t.Fatalf("%+v, %q, %q", r.Outcome, r.stdout, r.stderr)
			}
			run, err := files.OpenRun(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if before := run.Snapshots[0].Mark.Time.UnixMicro() < began; before != c.kept {
				t.Errorf("the first of %d snapshots is from before the work: %v", len(run.Snapshots), before)
			}
		})
	}
}

func TestWhatTheProgramSeesStaysAsItWas(t *testing.T) {
	heavytest.Skip(t, "many programs, one after the other")
	mine := t.TempDir()
	if err := os.WriteFile(filepath.Join(mine, "sitecustomize.py"), []byte("import builtins; builtins.mine = 'loaded'"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", mine)
	for _, c := range []struct{ name, program string }{
		{"the program's own sitecustomize is loaded", "print(mine)"},
		{"no folder of the agent's is where modules are looked for", "import sys; print([p for p in sys.path if 'memdiag' in p])"},
		{"random draws", "import random; random.seed(1); print(random.random())"},
		{"an exit code and both streams", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(9)"},
		{"an exception", "1 / 0"},
		{"a signal of its own", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"},
		{"warnings as errors", "import warnings; warnings.simplefilter('error'); print('fine')"},
		{"threads", "import threading\nt = [threading.Thread(target=print, args=(i,)) for i in range(3)]\n[(x.start(), x.join()) for x in t]; print(threading.active_count())"},
		{"a fork", "import os, sys\nprint('before', flush=True)\npid = os.fork()\nif pid == 0:\n    print('child', flush=True); os._exit(3)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"},
		{"a handler of SIGUSR1 of its own", "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('mine'))\nos.kill(os.getpid(), signal.SIGUSR1)\nimport time; time.sleep(0.5)"},
		{"tracemalloc of its own", "import time, tracemalloc\ntracemalloc.start()\ntime.sleep(0.6)\nprint(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())"},
		{"processes that are spawned", "import multiprocessing as m\ndef f(x):\n    return x + 1\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p:\n        print(p.map(f, [1, 2]))"},
		{"a PyTorch that cannot be imported", "import sys; sys.path.insert(0, sys.argv[0] + '.d')\nimport os; os.mkdir(sys.path[0])\nopen(sys.path[0] + '/torch.py', 'w').write('raise ValueError(1)')\ntry:\n    import torch\nfinally:\n    import shutil; shutil.rmtree(sys.path[0])"},
		{"marks do nothing but mark", "try:\n    import memdiag\n    memdiag.mark(step=1, phase='train')\nexcept ImportError:\n    pass\nprint('on')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := script(t, c.program)
			var stdout, stderr bytes.Buffer
			plain := recordtest.Command(t, python(t), path)
			plain.Stdout, plain.Stderr = &stdout, &stderr
			_ = plain.Run() // its code is compared
			code := plain.ProcessState.ExitCode()
			if s := plain.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
				code = 128 + int(s.Signal())
			}
			r := runOf(t, record.Options{}, python(t), path)
			if r.stdout != stdout.String() || r.stderr != stderr.String() || r.ExitCode != code {
				t.Errorf("code %d, want %d; stdout %q, want %q; stderr %q, want %q", r.ExitCode, code, r.stdout, &stdout, r.stderr, &stderr)
			}
		})
	}
}

// At its end Python restores what signals do by default: a request for a snapshot ended the program.
func TestARequestAtTheEndOfAProgramDoesNotKillIt(t *testing.T) {
	t.Parallel()
	r := runOf(t, record.Options{}, python(t), script(t, `
import os, signal
class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGUSR1)
        print("last")
last = Last()
`))
	if r.stdout != "last\n" || r.ExitCode != 0 || r.Signal != "" {
		t.Errorf("%q, code %d, %s", r.stdout, r.ExitCode, r.Signal)
	}
}

func TestAnEmptyPythonpathAddsNoFolder(t *testing.T) {
	t.Setenv("PYTHONPATH", "")
	r := runOf(t, record.Options{}, python(t), script(t, "import os, sys; print(os.getcwd() in sys.path)"))
	if r.stdout != "False\n" {
		t.Errorf("the current folder is on sys.path: %s%s", r.stdout, r.stderr)
	}
}

func TestWithoutTemporaryFilesTheAgentIsInTheRun(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	r := runOf(t, record.Options{}, python(t), script(t, "print(1)"))
	if r.stdout != "1\n" || len(r.Notes) > 0 {
		t.Errorf("%q, %q", r.stdout, r.Notes)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "memdiag-agent-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// PYTHONPATH parts its folders at colons, and a program may change its folder.
func TestTheAgentIsFoundWhereverTemporaryFilesAre(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"relative", "a:b"} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	absolute, err := filepath.Abs("a:b")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ temporary, run string }{
		{"relative", "run"}, {"a:b", "run"}, {absolute, "run"}, {"a:b", "a:b/run"},
	} {
		t.Run(c.temporary+" for "+c.run, func(t *testing.T) {
			t.Setenv("TMPDIR", c.temporary)
			r := runInto(t, filepath.Join(filepath.Dir(absolute), c.run+strconv.Itoa(len(c.temporary))), record.Options{}, "sh", "-c", `cd / && exec "$0" -c "import sys; print([p for p in sys.path if 'memdiag-agent' in p])"`, python(t))
			if r.stdout != "[]\n" || r.stderr != "" || len(r.Notes) > 0 {
				t.Errorf("%q, %q, %q", r.stdout, r.stderr, r.Notes)
			}
		})
	}
}

// A Ctrl-C of which sitecustomize knows nothing ended Python with a fatal error and the agent's traceback.
func TestAnInterruptWhileTheAgentLoadsReachesTheProgram(t *testing.T) {
	agent, err := os.ReadFile(filepath.Join("agent", "sitecustomize.py"))
	if err != nil {
		t.Fatal(err)
	}
	const interrupt = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.02)\n"
	const handles = "import time\ntry:\n    time.sleep(20)\n    print('not interrupted')\nexcept KeyboardInterrupt:\n    print('handled')\n"
	for _, c := range []struct{ name, memdiag, own, out string }{
		{"while the agent starts", "def _start():\n    " + strings.ReplaceAll(interrupt, "\n", "\n    "), "", "handled\n"},
		{"while the agent is imported", interrupt + "def _start():\n    pass", "", "handled\n"},
		{"while the program's own sitecustomize is imported", "def _start():\n    pass", interrupt, "handled\n"},
	} {
		for _, how := range []string{"script", "-c", "-m"} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				dir, own := t.TempDir(), t.TempDir()
				for path, text := range map[string]string{
					filepath.Join(dir, "sitecustomize.py"): string(agent), filepath.Join(dir, "memdiag.py"): c.memdiag,
					filepath.Join(own, "sitecustomize.py"): c.own, filepath.Join(own, "handles.py"): handles,
				} {
					if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				args := map[string][]string{"script": {filepath.Join(own, "handles.py")}, "-c": {"-c", handles}, "-m": {"-m", "handles"}}[how]
				command := recordtest.Command(t, python(t), args...)
				command.Env = append(command.Env, "PYTHONPATH="+dir+string(os.PathListSeparator)+own)
				if out, err := command.CombinedOutput(); err != nil || string(out) != c.out {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

func TestAProcessThatTheAgentCannotEnterIsSaid(t *testing.T) {
	r := runOf(t, record.Options{}, python(t), "-I", "-c", "import time; print(1); time.sleep(0.5)")
	if r.stdout != "1\n" || !r.noted("no Python process loaded the agent") || len(r.Unseen) != 1 { // a gate must not pass
		t.Errorf("%+v", r.Outcome)
	}
}

func TestAPythonTooOldForTheAgentRunsAsItWould(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	versions, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "*", "bin", "python")) // the pattern is right
	old := 0
	for _, path := range versions {
		if exec.Command(path, "-c", "import sys; sys.exit(sys.version_info >= (3, 10))").Run() != nil {
			continue
		}
		old++
		r := runOf(t, record.Options{}, path, "-c", "import time; time.sleep(0.6); print(1)")
		if r.ExitCode != 0 || r.stdout != "1\n" || r.stderr != "" || !r.noted("needs Python 3.10 or later") {
			t.Errorf("%s: %+v, %q, %q", path, r.Outcome, r.stdout, r.stderr)
		}
	}
	if old == 0 {
		t.Skip("no Python before 3.10 here")
	}
}

func TestAProcessThatOutlivesTheCommandIsSaid(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc here")
	}
	path := filepath.Join(t.TempDir(), "pid")
	r := runOf(t, record.Options{}, "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! > "+path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if !r.noted("left process "+strconv.Itoa(pid)+" running") || r.noted("PYTHONPATH") {
		t.Errorf("%q", r.Notes)
	}
}
