package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// about is an agent's report on its process.
type about struct {
	PID      int               `json:"pid"`
	Started  int64             `json:"started"` // in the kernel's units; 0 if unknown
	State    string            `json:"state"`   // "started", "stopped", "finished", "failed"
	Raised   string            `json:"raised"`  // the exception that ended the process; "" for none
	Exit     int               `json:"exit"`    // the code passed to os._exit
	Recorded bool              `json:"recorded"`
	Steps    int64             `json:"steps"`
	Rank     *int              `json:"rank"`
	Notes    []string          `json:"notes"`
	Unseen   []snapshot.Unseen `json:"unseen"`
	Torch    string            `json:"torch"`
	Code     *snapshot.Code    `json:"code"`
	Child    bool              `json:"child"` // whether it is recorded beside the process of its rank

	Intervention *Intervened       `json:"intervention"`
	Packages     map[string]string `json:"packages"`
	Census       *census           `json:"census"`
}

// reportPrefix begins the names of agents' reports. Tasks of other ranks that record into the same folder have other prefixes.
func reportPrefix(rank int) string {
	if rank == snapshot.NoRank {
		return ".agent_"
	}
	return ".agent" + rundir.RankSuffix(rank) + "_"
}

// collect reads the agents' reports, counts the snapshots, and removes files that are no longer needed. If the task has a rank, files
// of other ranks are left alone.
func (o *Outcome) collect(dir string, rank int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("the run's folder cannot be read: %v", err))
		o.agents = true
		return
	}
	var agents []about
	claims, ranks := claimants(dir), []int{rank}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, reportPrefix(rank)) || strings.HasSuffix(name, partSuffix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, name)
		a, err := readReport(path)
		if err != nil {
			what := "the agent could not write its report; a full disk is one reason"
			pid, _ := strconv.Atoi(strings.TrimSuffix(name[strings.LastIndexByte(name, '_')+1:], ".json")) // the agent named it
			a = about{PID: pid, Notes: []string{what}, Unseen: []snapshot.Unseen{{What: what}}}
		}
		agents = append(agents, a)
		if a.Rank != nil {
			ranks = append(ranks, *a.Rank)
		}
		_ = os.Remove(path)
	}
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(dir, name)
		switch {
		case rank != snapshot.NoRank && !slices.Contains(ranks, rundir.RankOf(name)):
		case rundir.IsTemporary(name):
			_ = os.Remove(path)
		case rundir.IsRecordedSnapshot(name):
			o.Snapshots++
			if step, ok := rundir.StepOf(name); ok && rundir.ChildOf(name) == 0 {
				o.LastStep = max(o.LastStep, step)
			}
		}
	}
	o.agents = len(agents) > 0
	o.Steps = max(o.Steps, o.LastStep) // the report of a killed program has fewer
	slices.SortFunc(agents, func(a, b about) int { return a.PID - b.PID })
	several := 0
	for _, a := range agents {
		if !a.Child {
			several++
		}
	}
	alike := make(map[string]int) // how many processes have the same note
	for _, a := range agents {
		for _, n := range a.Notes {
			alike[n]++
		}
	}
	for _, a := range agents {
		if a.Recorded {
			o.Steps = max(o.Steps, a.Steps)
		}
		for _, n := range a.Notes {
			note := a.says(n, several > 1 || a.Child)
			if alike[n] > mostAlike {
				note = fmt.Sprintf("%d processes: %s", alike[n], n)
			}
			if !slices.Contains(o.Notes, note) {
				o.Notes = append(o.Notes, note)
			}
		}
		if a.Code != nil {
			o.Code.Add(a.Code)
		}
		if a.Packages != nil && o.Packages == nil {
			o.Packages = make(map[string]string)
		}
		maps.Copy(o.Packages, a.Packages)
		if i := a.Intervention; i != nil && i.Acts > 0 {
			i.PID, i.Rank, i.Child = a.PID, snapshot.NoRank, a.Child
			if a.Rank != nil {
				i.Rank = *a.Rank
			}
			o.Intervened = append(o.Intervened, *i)
		}
		if a.Raised != "" && a.Recorded && o.ExitCode != 0 {
			o.Notes = append(o.Notes, a.says("the program ended with "+a.Raised, several > 1 || a.Child))
			if outOfMemory(a.Raised) {
				o.Died = cmp.Or(o.Died, "memory ran out: "+a.Raised)
			}
		}
		unseen := a.Unseen
		if counted, records := claims.of(a.PID, a.Started); records && o.ExitCode == 0 {
			unseen = append(unseen, a.lost(counted)...)
		}
		for _, u := range unseen {
			if !slices.Contains(o.Unseen, u) {
				o.Unseen = append(o.Unseen, u)
			}
		}
	}
	if slices.ContainsFunc(agents, func(a about) bool { return !a.Child && a.Packages == nil }) {
		o.Packages = nil
	}
}

// outOfMemory reports whether an exception, as named by an agent, says that memory ran out.
func outOfMemory(raised string) bool {
	return raised == "MemoryError" || raised == "OutOfMemoryError" || strings.HasSuffix(raised, ": out of memory")
}

// lost is the end of a recorded process if it failed though its command did not. A program that counts no steps may be a server, which
// is killed when it has done its work.
func (a *about) lost(steps bool) []snapshot.Unseen {
	switch {
	case a.Raised != "":
		return []snapshot.Unseen{{What: "the recorded process ended with " + a.Raised + ", though the command ended with code 0: its work was not done"}}
	case a.Exit != 0:
		return []snapshot.Unseen{{What: fmt.Sprintf("the recorded process ended with code %d, though the command ended with code 0: its work was not done", a.Exit)}}
	case steps && a.State == "started":
		return []snapshot.Unseen{{What: "the recorded process did not report its end, so it may have been killed: later growth was not seen"}}
	}
	return nil
}

// mostAlike is the most processes with the same note that are listed one by one; a command may fork hundreds.
const mostAlike = 8

// says returns a note of an agent. If there are several processes, it names the process.
func (a *about) says(note string, several bool) string {
	switch {
	case !several:
		return note
	case a.Rank != nil:
		return "rank " + strconv.Itoa(*a.Rank) + ": " + note
	}
	return fmt.Sprintf("process %d: %s", a.PID, note)
}

func readReport(path string) (a about, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	err = json.Unmarshal(text, &a)
	return a, err
}
