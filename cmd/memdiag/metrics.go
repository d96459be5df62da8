package main

import (
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/report/metrics"
	"github.com/memdiag/memdiag/snapshot"
)

// metrics are the metrics of a run that was judged once, rank by rank.
func (env *environment) metrics(run *snapshot.Run, result *diff.Result, ranks []report.RankResult) prometheus.Gatherer {
	look := metrics.Look{Name: runName(run), Run: run, Rank: snapshot.NoRank, Result: result, Root: workingFolder(), At: env.now()}
	if len(ranks) < 2 {
		if len(run.Ranks) > 0 && len(run.Snapshots) > 0 {
			look.Rank = run.Snapshots[0].Rank
		}
		return metrics.Of(look)
	}
	var looks []metrics.Look
	for _, r := range ranks {
		if r.Result != nil {
			look.Run, look.Rank, look.Result = r.Result.Run(), r.Rank, r.Result
			looks = append(looks, look)
		}
	}
	return metrics.Of(looks...)
}

// runName is a readable name of a run: its folder, or the last of loose files.
func runName(run *snapshot.Run) string {
	path := run.Path
	if path == "" && len(run.Files) > 0 {
		path = run.Files[len(run.Files)-1]
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return filepath.Base(path)
}
