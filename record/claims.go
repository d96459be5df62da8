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

// claimants are the processes that record, as their claims in the run's folder say, with whether they count
// steps. Who counts steps has taken over from who had ticks, and who has a rank from those without.
func claimants(dir string) map[int]bool {
	pids := make(map[int]bool)
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
		if pid, wrong := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && wrong == nil {
			pids[pid] = pids[pid] || steps == name
		}
	}
	return pids
}
