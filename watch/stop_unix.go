//go:build unix

package watch

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Stop sends a signal to the run's topmost processes, and kills what is left of all after a time. It returns how many it
// has signalled.
func (f *Follower) Stop(signal syscall.Signal, wait time.Duration) (int, error) {
	host, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	var all []*snapshot.TreeProcess
	for _, run := range f.runs {
		if run.Tree == nil || run.Info.Host != host {
			return 0, errors.New("the run is of another machine, or tells no processes")
		}
		for i := range run.Tree.Processes {
			if p := &run.Tree.Processes[i]; alive(p) {
				all = append(all, p)
			}
		}
	}
	n := 0
	for _, p := range topmost(all) {
		if syscall.Kill(p.PID, signal) == nil {
			n++
		}
	}
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if !anyAlive(all) {
			return n, nil
		}
	}
	for _, p := range all {
		if alive(p) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have gone meanwhile
		}
	}
	return n, nil
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
