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

// standingName is the file in a run's folder by which the agent knows how the run stands. It goes at the end.
func standingName(rank int) string {
	if rank == snapshot.NoRank {
		return ".standing.json"
	}
	return ".standing" + rundir.RankSuffix(rank) + ".json"
}

// DropStanding removes what WriteStanding wrote: the agents have ended.
func DropStanding(dir string, rank int) { _ = os.Remove(filepath.Join(dir, standingName(rank))) } // there may be none

// WriteStanding gives the agents of a run how it stands, as watch.Standing has it, for the trackers of Options.LogTo.
func WriteStanding(dir string, rank int, standing any) error {
	text, err := json.Marshal(standing)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, standingName(rank))
	_ = os.Remove(path + partSuffix) // of a memdiag that was killed, or no file of ours
	f, err := os.OpenFile(path+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+partSuffix, path) // whole, for who reads it meanwhile
}
