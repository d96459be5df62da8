package record

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// claims are the processes that record, by PID. Each has its start time, since PIDs are used again.
type claims map[int][]claimed

// claimed is a process that records.
type claimed struct {
	started int64 // 0 if the agent did not know it
	steps   bool  // whether it counts steps
}

// of reports whether the process with this PID and start time records, and whether it counts steps.
func (c claims) of(pid int, started int64) (steps, records bool) {
	for _, of := range c[pid] {
		if of.started == 0 || started == 0 || of.started == started {
			steps, records = steps || of.steps, true
		}
	}
	return steps, records
}

// claimList holds the claims in the run's folder. A folder shared by a thousand ranks has tens of thousands of names, and each rank
// lists it. Listing therefore takes at most one part in listShare of the time, but the first claim is found within firstClaim.
type claimList struct {
	claims claims
	any    bool                // whether there is a claim, even one that cannot be read
	known  map[string]claimant // claims read so far; a claim never changes
	due    time.Time           // when the folder is listed again
}

const listShare, firstClaim = 50, 5 * time.Second

// claimant is the content of a claim.
type claimant struct {
	pid     int
	started int64
}

// look lists the folder if that is due. A claim with steps replaces the claim by ticks of the same name, and claims with a rank replace
// those without.
func (l *claimList) look(dir string) {
	begun := time.Now()
	if begun.Before(l.due) {
		return
	}
	if l.known == nil {
		l.known = make(map[string]claimant)
	}
	names, ranks := make(map[string]bool), false
	for _, name := range namesBeginning(dir, claimPrefix) {
		if strings.Contains(name, "_child") {
			continue // seen from outside, only its memory beyond its snapshots counts
		}
		names[name], ranks = true, ranks || rundir.RankOf(name) != snapshot.NoRank
	}
	l.claims, l.any = make(claims), len(names) > 0
	for name := range names {
		steps := strings.Replace(name, claimPrefix+"tick", claimPrefix+"step", 1)
		if ranks && rundir.RankOf(name) == snapshot.NoRank || steps != name && names[steps] {
			continue
		}
		c, ok := l.known[name]
		if !ok {
			if c, ok = readClaim(filepath.Join(dir, name)); !ok {
				continue
			}
			l.known[name] = c
		}
		l.claims[c.pid] = append(l.claims[c.pid], claimed{c.started, steps == name})
	}
	now := time.Now()
	l.due = now.Add(l.rest(now.Sub(begun)))
}

// rest is the time until the next listing, given how long the last one took.
func (l *claimList) rest(took time.Duration) time.Duration {
	if !l.any {
		return min(listShare*took, firstClaim) // host snapshots are written until then
	}
	return listShare * took
}

func readClaim(path string) (c claimant, ok bool) {
	text, err := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return c, false // it is being written, or the disk is full
	}
	if c.pid, err = strconv.Atoi(fields[0]); err != nil {
		return c, false
	}
	if len(fields) > 1 {
		c.started, _ = strconv.ParseInt(fields[1], 10, 64) // 0 if it is not a number
	}
	return c, true
}

// claimants returns the processes that record, according to the claims in a folder.
func claimants(dir string) claims {
	var l claimList
	l.look(dir)
	return l.claims
}
