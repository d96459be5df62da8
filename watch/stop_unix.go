//go:build unix

package watch

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Stop sends a signal to the run's topmost processes. After a time it kills all processes that still run, including those that began
// meanwhile. It returns how many it has signalled. If ctx is done before, nothing is killed.
func (f *Follower) Stop(ctx context.Context, signal syscall.Signal, wait time.Duration) (int, error) {
	all, err := processesOf(f.runs)
	if err != nil {
		return 0, err
	}
	n := send(topmost(living(all)), signal)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(wait); anyAlive(all); {
		if !time.Now().Before(end) {
			if newest, err := f.newest(); err == nil {
				all = append(all, newest...)
			}
			send(living(all), syscall.SIGKILL)
			return n, nil
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-tick.C:
		}
	}
	return n, nil
}

// newest are the processes that the run's tables have now. No rank is judged for them, and no blocks are kept.
func (f *Follower) newest() ([]*snapshot.TreeProcess, error) {
	var runs []*snapshot.Run
	err := f.Open(func(run *snapshot.Run) error {
		runs = append(runs, &snapshot.Run{Info: run.Info, Tree: run.Tree})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return processesOf(runs)
}

func living(all []*snapshot.TreeProcess) []*snapshot.TreeProcess {
	return slices.DeleteFunc(slices.Clone(all), func(p *snapshot.TreeProcess) bool { return !alive(p) })
}

// send returns how many processes took the signal: others have ended, or belong to another user.
func send(all []*snapshot.TreeProcess, signal syscall.Signal) (n int) {
	for _, p := range all {
		if syscall.Kill(p.PID, signal) == nil {
			n++
		}
	}
	return n
}

// together puts a command and all its children into a process group, which is killed with it.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// ParseSignal reads a signal's name or number: TERM, SIGUSR1, 10.
func ParseSignal(text string) (syscall.Signal, error) {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	for known, signal := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "HUP": syscall.SIGHUP} {
		if name == known || text == strconv.Itoa(int(signal)) {
			return signal, nil
		}
	}
	return 0, errors.New("want TERM, INT, HUP, USR1 or USR2")
}
