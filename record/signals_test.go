//go:build unix

package record

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestASignalBeforeTheProgramStartsReachesIt: its group got the signal, and so the witness did, but the program was not there yet.
func TestASignalBeforeTheProgramStartsReachesIt(t *testing.T) {
	p := passSignals(true)
	defer p.stop()
	if p.witness == nil {
		t.Fatal("no witness")
	}
	for _, pid := range []int{p.witness.process.Process.Pid, os.Getpid()} {
		if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
	}
	for begun := time.Now(); len(p.signals) == 0 && time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
	}
	early, child := p.early(), exec.Command("sleep", "10")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	p.to(child.Process, early)
	_ = child.Wait() // a signal ends it
	if name, _ := endedBySignal(child.ProcessState, 0); name != "SIGUSR2" {
		t.Errorf("it ended by %q", name)
	}
}
