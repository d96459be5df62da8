package record

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestTheRunOfAProcessIsFound(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	sleep.Env = environ(os.Environ(), "/agent", "/runs/a [1]", "{}")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait() // it was killed
	}()
	// memdiag itself is the parent.
	for pid, want := range map[int]string{sleep.Process.Pid: "/runs/a [1]", os.Getpid(): "/runs/a [1]", 1 << 30: ""} {
		dir := RunOf(pid)
		for tries := 0; dir != want && tries < 50; tries++ { // the kernel's list of children is not exact while some end
			time.Sleep(20 * time.Millisecond)
			dir = RunOf(pid)
		}
		if dir != want {
			t.Errorf("process %d: %q, want %q", pid, dir, want)
		}
	}
}
