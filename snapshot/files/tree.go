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
	suffix := ""
	if own := rundir.RankSuffix(rank); rank != snapshot.NoRank && isRegular(filepath.Join(run.Path, "host"+own+".csv")) {
		suffix = own
	} else if len(run.Ranks) > 0 && rank != run.Ranks[0] {
		return
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
