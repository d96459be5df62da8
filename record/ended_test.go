//go:build unix

package record_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/files"
)

// start runs a command under memdiag in a process of its own.
func start(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	recordtest.Bound(t, dir)
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), "RECORD_TEST_DIR="+dir, "TMPDIR="+t.TempDir()) // what is killed leaves the agent
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// await returns when there are so many snapshots in the folder.
func await(t *testing.T, dir string, n int) {
	t.Helper()
	awaitFiles(t, filepath.Join(dir, "snapshot_*"), n)
}

// awaitFiles returns when so many files have names of the pattern. It is patient,
// for a machine that does much else.
func awaitFiles(t *testing.T, pattern string, n int) {
	t.Helper()
	for range 2400 {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) >= n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not %d of %s", n, pattern)
}

func TestSnapshotsOutliveMemdiag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	c := start(t, dir, python(t), script(t, leaky), "400")
	await(t, dir, 1)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	await(t, dir, 3)
	if run, err := files.OpenRun(dir); err != nil || len(run.Snapshots) < 3 {
		t.Errorf("%v, %v", run, err)
	}
	for range 2400 { // the program writes into the folder up to its end, and the folder is removed then
		names, err := filepath.Glob(filepath.Join(dir, ".agent_*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 1 {
			if text, err := os.ReadFile(names[0]); err == nil && strings.Contains(string(text), `"finished"`) {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestSnapshotsOutliveTheCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	t.Setenv("KILL_AFTER", filepath.Join(dir, "snapshot_*.json"))
	r := runInto(t, dir, record.Options{Interval: 100 * time.Millisecond}, python(t), script(t, leaky+`
import glob, os, signal
while len(glob.glob(os.environ["KILL_AFTER"])) < 3:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
`), "1")
	if r.ExitCode != 128+int(syscall.SIGKILL) || r.Signal != "SIGKILL" || r.Snapshots < 3 || r.Died == "" {
		t.Fatalf("%+v", r.Outcome)
	}
	if run, err := files.OpenRun(r.dir); err != nil || len(run.Snapshots) != r.Snapshots {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAnEndWithinACommandThatEndsWellIsNoted has a program of a shell that ends with 0 whatever the program does.
func TestAnEndWithinACommandThatEndsWellIsNoted(t *testing.T) {
	t.Parallel()
	const steps = `
import os, signal, sys, time
from memdiag import mark
for step in range(1, 31):
    time.sleep(0.01)
    mark(step=step)
`
	for _, c := range []struct{ name, text, want string }{
		{"returns", steps, ""},
		{"calls os._exit", steps + "os._exit(0)", ""},
		{"fails by os._exit", steps + "os._exit(3)", "the recorded process ended with code 3, though the command ended with code 0: its work was not done"},
		{"is interrupted", steps + "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", ""},
		{"trains in a fork", "import multiprocessing\ndef train():\n" + strings.ReplaceAll(steps, "\n", "\n    ") + `
p = multiprocessing.get_context("fork").Process(target=train)
p.start()
p.join()`, ""},
		{"is a server that is killed", `
import glob, os, signal, time
seen = os.path.join(glob.escape(os.environ["MEMDIAG_AGENT_DIR"]), "snapshot_*.json")  # no snapshot of the host, which the agent's replace
while not glob.glob(seen):
    time.sleep(0.05)
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGTERM)`, ""},
		{"is killed", steps + "os.kill(os.getpid(), signal.SIGKILL)", "the recorded process did not report its end, so it may have been killed: later growth was not seen"},
		{"raises", steps + "{}[0]", "the recorded process ended with KeyError, though the command ended with code 0: its work was not done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := runOf(t, record.Options{}, "sh", "-c", `"$0" "$1"; true`, python(t), script(t, c.text))
			var got []string
			for _, u := range r.Unseen {
				got = append(got, u.What)
			}
			if strings.Join(got, "; ") != c.want || r.ExitCode != 0 || r.Snapshots == 0 {
				t.Errorf("%q, want %q; %+v", got, c.want, r.Outcome)
			}
		})
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	// Under nohup the command would ignore hangups, as the tests do.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			ready := filepath.Join(t.TempDir(), "ready")
			c := start(t, dir, python(t), script(t, `
import signal, sys, time
def stop(n, frame):
    sys.exit(40 + n)
for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    signal.signal(s, stop)
open(sys.argv[1], "w").close()
for _ in range(6000):
    time.sleep(0.1)
`), ready)
			awaitFiles(t, ready, 1)
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait() // its code is looked at
			if got := c.ProcessState.ExitCode(); got != 40+int(s) {
				t.Errorf("exit code %d, want %d", got, 40+int(s))
			}
		})
	}
}

func TestASnapshotIsTakenOnRequest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	c := start(t, dir, python(t), script(t, "import time\nprint('torch')\ntime.sleep(600)"))
	// A script that speaks of PyTorch has none by the clock for a while. The agent
	// reports when it listens.
	awaitFiles(t, filepath.Join(dir, ".agent_*[0-9].json"), 1)
	if err := c.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	await(t, dir, 1)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", c.ProcessState.ExitCode())
	}
}

// TestWhatEndedAProgramIsSaid: that memory ran out is what one looks for first, and RuntimeError does not say it.
func TestWhatEndedAProgramIsSaid(t *testing.T) {
	t.Parallel()
	for raised, want := range map[string]string{
		`RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")`: "the program ended with RuntimeError: out of memory",
		`RuntimeError("shapes differ")`: "the program ended with RuntimeError",
		`MemoryError()`:                 "the program ended with MemoryError",
	} {
		r := runOf(t, record.Options{}, python(t), script(t, "from memdiag import mark\nfor i in range(9):\n    mark(step=i)\nraise "+raised+"\n"))
		if r.ExitCode != 1 || !slices.Contains(r.Notes, want) {
			t.Errorf("%s: %d, %q", raised, r.ExitCode, r.Notes)
		}
	}
}

// TestACommandThatASignalEndsAtOnceIsNotSaidToBeTooOld also with -I, where that is not known.
func TestACommandThatASignalEndsAtOnceIsNotSaidToBeTooOld(t *testing.T) {
	r := runOf(t, record.Options{}, python(t), "-I", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)")
	if !r.noted("; SIGUSR1 ended the command after ") || !r.noted("perhaps before the agent could start. If a longer run") || len(r.Unseen) != 1 {
		t.Errorf("%+v", r.Outcome)
	}
}
