package watch

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
)

// processesOf are the processes in the tables of a run's ranks. Ranks on one machine may share a table; the first rank then has it.
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

// dead reports whether all processes in the run's tables have ended. It is false for a run on another machine, or without a table.
func (f *Follower) dead() bool {
	all, err := processesOf(f.runs)
	return err == nil && !anyAlive(all)
}

// alive reports whether this process, with this start time, still runs. Without /proc it may.
func alive(p *snapshot.TreeProcess) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat")
	if err != nil {
		_, none := os.Stat("/proc/self/stat")
		return none != nil
	}
	const state, started = 0, 19 // indices of fields after the name, which is in parentheses (proc_pid_stat(5))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > started && string(fields[started]) == strconv.FormatInt(p.Started, 10) && string(fields[state]) != "Z"
}
