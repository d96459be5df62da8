package watch

import (
	"bytes"
	"os"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
)

// dead reports whether all processes that the run's table has are gone. Of a run on another machine, or without a table,
// nothing tells.
func (f *Follower) dead() bool {
	host, err := os.Hostname()
	if err != nil {
		return false
	}
	known := false
	for _, run := range f.runs {
		if run.Tree == nil || run.Info.Host != host {
			return false
		}
		for i := range run.Tree.Processes {
			if known = true; alive(&run.Tree.Processes[i]) {
				return false
			}
		}
	}
	return known
}

// alive reports whether a process is there, and is the one that began then. Where there is no /proc it may be.
func alive(p *snapshot.TreeProcess) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat")
	if err != nil {
		_, none := os.Stat("/proc/self/stat")
		return none != nil
	}
	const state, started = 0, 19 // of the fields behind the name, which is in parentheses (proc_pid_stat(5))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > started && string(fields[started]) == strconv.FormatInt(p.Started, 10) && string(fields[state]) != "Z"
}
