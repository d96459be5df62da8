package record

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// Trackers are the experiment trackers to which the agent can log.
var Trackers = [...]string{"wandb", "mlflow", "tensorboard"}

// standingName is the file in a run's folder from which the agent reads the state of the run. It is removed at the end.
func standingName(rank int) string {
	if rank == snapshot.NoRank {
		return ".standing.json"
	}
	return ".standing" + rundir.RankSuffix(rank) + ".json"
}

// DropStanding removes what WriteStanding wrote: the agents have ended.
func DropStanding(dir string, rank int) { _ = os.Remove(filepath.Join(dir, standingName(rank))) } // DropStanding removes the file of WriteStanding, after the agents have ended.

// WriteStanding passes the state of the run, a watch.Standing, to its agents, which log it to the trackers of Options.LogTo.
func WriteStanding(dir string, rank int, standing any) error {
	text, err := json.Marshal(standing)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, standingName(rank))
	_ = os.Remove(path + partSuffix) // left by a killed memdiag, or not our file
	f, err := os.OpenFile(path+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+partSuffix, path) // renamed, so that readers see it whole
}
