package files

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxTree bounds a table of processes in bytes.
const maxTree = 256 << 20

// readTree reads what is known of the command's processes, those of a rank where they were
// recorded by themselves; else they are all ranks' together, and are read with the lowest. A run
// is of use without it, so that its faults are notes.
func readTree(run *snapshot.Run, rank int) {
	if !bringsTree(run, rank) {
		return
	}
	suffix := ""
	if ownTree(run, rank) {
		suffix = rundir.RankSuffix(rank)
	}
	tree := &snapshot.Tree{}
	read := func(name string, decode func(io.Reader) error) {
		path := filepath.Join(run.Path, name+suffix+".csv")
		f, _, err := openRegular(path)
		if errors.Is(err, fs.ErrNotExist) {
			return // of an older memdiag, or of no Linux
		}
		if err == nil {
			run.Files = append(run.Files, path)
			err = errors.Join(decode(io.LimitReader(f, maxTree)), f.Close())
		}
		if err != nil {
			run.Notes = append(run.Notes, path+": "+err.Error()+"; what follows there is not read")
		}
	}
	read("processes", func(r io.Reader) (err error) {
		tree.Processes, err = processes.Read(r)
		return err
	})
	read("host", func(r io.Reader) (err error) {
		tree.Host, err = processes.ReadHost(r)
		return err
	})
	if len(tree.Processes)+len(tree.Host) > 0 {
		run.Tree = tree
	}
}

// ownTree reports whether a rank was recorded by itself.
func ownTree(run *snapshot.Run, rank int) bool {
	return rank != snapshot.NoRank && isRegular(filepath.Join(run.Path, "host"+rundir.RankSuffix(rank)+".csv"))
}

// bringsTree reports whether the command's processes are read with a rank.
func bringsTree(run *snapshot.Run, rank int) bool {
	return ownTree(run, rank) || len(run.Ranks) == 0 || rank == run.Ranks[0]
}
