// Package recordtest ends processes of a test that hang.
package recordtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bound fails the test and ends its processes if they have not ended after half of the time that go test has left, at least a minute.
// Its processes are those with text in their initial environment, such as the folder of a recorded run. They get SIGABRT, on which a Go
// program prints its goroutines, and Python its threads if PYTHONFAULTHANDLER is set. Later they are killed. Without /proc nothing is
// ended.
func Bound(t *testing.T, text string) {
	t.Helper()
	patience := 5 * time.Minute
	if deadline, ok := t.Deadline(); ok {
		patience = max(time.Minute, (time.Until(deadline) / 2).Round(time.Second))
	}
	bound(t, text, patience)
}

func bound(t testing.TB, text string, patience time.Duration) {
	stop := make(chan struct{})
	var waits sync.WaitGroup
	t.Cleanup(func() { close(stop); waits.Wait() })
	waits.Go(func() {
		for _, s := range []syscall.Signal{syscall.SIGABRT, syscall.SIGKILL} {
			select {
			case <-stop:
				return
			case <-time.After(patience):
			}
			for _, p := range processes(text) {
				t.Errorf("%v is too long for %s; it gets the signal %q", patience, p.command, s)
				_ = p.Signal(s) // it may have ended by now
			}
			patience = 10 * time.Second // for printing
		}
	})
}

// Command is a command whose processes are ended by Bound.
func Command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, args...)
	mark := "MEMDIAG_TEST=" + t.TempDir() // unique
	c.Env = append(os.Environ(), mark)
	Bound(t, mark)
	return c
}

// process is a running process.
type process struct {
	*os.Process
	command string
}

// processes lists the processes with text in their environment, except this one.
func processes(text string) (found []process) {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder)) // digits
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || pid == os.Getpid() || !bytes.Contains(environment, []byte(text)) {
			continue // it belongs to another user, or has ended
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // for the message only
		words := strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ")
		found = append(found, process{p, fmt.Sprintf("process %d, %s", pid, words)})
	}
	return found
}
