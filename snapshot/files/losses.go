package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/losses"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxLosses bounds the file of losses in bytes.
const maxLosses = 64 << 20

// readLosses reads the losses of a rank. A run is of use without them, so that their faults are notes.
func readLosses(run *snapshot.Run, rank int) {
	suffix := ""
	if rank != snapshot.NoRank {
		suffix = rundir.RankSuffix(rank)
	}
	path := filepath.Join(run.Path, "losses"+suffix+".csv")
	f, _, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		run.Files = append(run.Files, path)
		run.Losses, err = losses.Read(io.LimitReader(f, maxLosses))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		run.Notes = append(run.Notes, fmt.Sprintf("%s: the losses were not read: %v; what follows there is not read", path, err))
	}
}
