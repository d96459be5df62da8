package record

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// claims are the processes that record, by their numbers, each with when it began. A number is used again.
type claims map[int][]claimed

// claimed is a process that records.
type claimed struct {
	started int64 // 0 where the agent did not know
	steps   bool  // it counts steps
}

// of is whether the process of that number that began then records, and whether it counts steps.
func (c claims) of(pid int, started int64) (steps, records bool) {
	for _, of := range c[pid] {
		if of.started == 0 || started == 0 || of.started == started {
			steps, records = steps || of.steps, true
		}
	}
	return steps, records
}

// claimants are the processes that record, as their claims in the run's folder say. Who counts steps has taken over from who had
// ticks, and who has a rank from those without.
func claimants(dir string) claims {
	found := make(claims)
	names := namesBeginning(dir, claimPrefix)
	ranks := slices.ContainsFunc(names, func(name string) bool { return rundir.RankOf(name) != snapshot.NoRank })
	for _, name := range names {
		if strings.Contains(name, "_child") {
			continue // how it grows is seen from outside, too, as far as its snapshots do not explain it
		}
		steps := strings.Replace(name, claimPrefix+"tick", claimPrefix+"step", 1)
		if ranks && rundir.RankOf(name) == snapshot.NoRank || steps != name && slices.Contains(names, steps) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) == 0 {
			continue
		}
		pid, wrong := strconv.Atoi(fields[0])
		if wrong != nil {
			continue
		}
		started := int64(0)
		if len(fields) > 1 {
			started, _ = strconv.ParseInt(fields[1], 10, 64) // 0 of what is no number
		}
		found[pid] = append(found[pid], claimed{started, steps == name})
	}
	return found
}
