package watch

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
)

// processesOf are those that the tables of a run's ranks have. Ranks on one machine may share a table, which the first then has.
func processesOf(runs []*snapshot.Run) (all []*snapshot.TreeProcess, err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.Info.Host != host {
			return nil, errors.New("the run was recorded on another machine")
		}
		for i := 0; run.Tree != nil && i < len(run.Tree.Processes); i++ {
			all = append(all, &run.Tree.Processes[i])
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the run has no record of its processes")
	}
	return all, nil
}

// dead reports whether all processes that the run's tables have are gone. Of a run on another machine, or without a table,
// nothing tells.
func (f *Follower) dead() bool {
	all, err := processesOf(f.runs)
	return err == nil && !anyAlive(all)
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
