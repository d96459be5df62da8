//go:build unix

package record_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/recordtest"
)

// counting counts its signals until it is ended, or for half a second after the first.
const counting = `
import os, signal, sys, time
seen, until = [], time.time() + 60
def count(number, frame):
    global until
    seen.append(number)
    until = min(until, time.time() + 0.5)
for s in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2:
    signal.signal(s, count)
open(sys.argv[1] + ".part", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
while time.time() < until:
    time.sleep(0.02)
print([signal.Signals(s).name for s in seen], flush=True)
`

// TestTheProgramGetsASignalOnce: however a signal is sent to memdiag and its program, the program gets it.
func TestTheProgramGetsASignalOnce(t *testing.T) {
	hangups := make(chan os.Signal, 1) // under nohup the program would ignore them
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	toGroup := func(c *exec.Cmd, _ int, s syscall.Signal) error { return syscall.Kill(-c.Process.Pid, s) }
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		send   func(c *exec.Cmd, program int, s syscall.Signal) error
	}{
		{"an interrupt to the group, as of a shell", syscall.SIGINT, toGroup},
		{"a quit to the group", syscall.SIGQUIT, toGroup},
		{"the end to the group", syscall.SIGTERM, toGroup},
		{"a hang-up to the group", syscall.SIGHUP, toGroup},
		{"one of the user's to the group", syscall.SIGUSR2, toGroup},
		{"the end to memdiag alone, as of docker stop", syscall.SIGTERM, func(c *exec.Cmd, _ int, s syscall.Signal) error { return c.Process.Signal(s) }},
		{"the end to memdiag and to the group, as of timeout", syscall.SIGTERM, func(c *exec.Cmd, _ int, s syscall.Signal) error {
			if err := c.Process.Signal(s); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
			return syscall.Kill(-c.Process.Pid, s)
		}},
		{"the end to one process after the other, as of systemd and SLURM", syscall.SIGTERM, func(c *exec.Cmd, program int, s syscall.Signal) error {
			for _, pid := range []int{c.Process.Pid, witnessOf(t, c.Process.Pid), program} {
				if err := syscall.Kill(pid, s); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			memdiag, said, program := startCounting(t)
			if err := c.send(memdiag, program, c.signal); err != nil {
				t.Fatal(err)
			}
			if err := memdiag.Wait(); err != nil {
				t.Error(err)
			}
			if want := fmt.Sprintf("['%s']\n", signalNames[c.signal]); said.String() != want {
				t.Errorf("it got %s, want %s", said, want)
			}
		})
	}
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT", syscall.SIGUSR2: "SIGUSR2",
}

// startCounting starts memdiag, in a process group of its own, and returns when its program listens.
func startCounting(t *testing.T) (memdiag *exec.Cmd, said *strings.Builder, program int) {
	t.Helper()
	dir := t.TempDir()
	listens := filepath.Join(dir, "listens")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	recordtest.Bound(t, dir)
	said = new(strings.Builder)
	memdiag = exec.Command(self, python(t), script(t, counting), listens)
	memdiag.Env = append(os.Environ(), "RECORD_TEST_DIR="+filepath.Join(dir, "run"))
	memdiag.Stdout, memdiag.Stderr = said, said
	memdiag.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := memdiag.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFiles(t, listens, 1)
	text, err := os.ReadFile(listens)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &program); err != nil {
		t.Fatal(err)
	}
	return memdiag, said, program
}

// TestTheWitnessOfSignalsEndsWithMemdiag, also where memdiag is killed.
func TestTheWitnessOfSignalsEndsWithMemdiag(t *testing.T) {
	memdiag, _, program := startCounting(t)
	witness := witnessOf(t, memdiag.Process.Pid)
	if err := memdiag.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(program, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = memdiag.Wait() // it was killed
	for range 500 {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", witness)); err != nil || !strings.HasPrefix(string(text), record.WitnessName) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is left", witness)
}

// TestWithoutItsWitnessASignalIsPassedOn: nobody tells any more whether the program has got it.
func TestWithoutItsWitnessASignalIsPassedOn(t *testing.T) {
	memdiag, said, _ := startCounting(t)
	if err := syscall.Kill(witnessOf(t, memdiag.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := memdiag.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := memdiag.Wait(); err != nil || said.String() != "['SIGTERM']\n" {
		t.Errorf("it got %s, %v", said, err)
	}
}

// witnessOf is the witness that a memdiag has started.
func witnessOf(t *testing.T, memdiag int) int {
	t.Helper()
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || strings.TrimRight(string(text), "\x00") != record.WitnessName {
			continue
		}
		var pid, parent int
		var name, state string
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(stat), &pid, &name, &state, &parent); err == nil && parent == memdiag {
			return pid
		}
	}
	t.Skip("no process is found in /proc")
	return 0
}
