package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/losses"
	"github.com/memdiag/memdiag/snapshot/peaks"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxTable bounds the file of losses, and that of peaks, in bytes.
const maxTable = 64 << 20

func (f *Folder) readLosses(run *snapshot.Run, rank int) {
	f.readTable(run, rank, "losses", func(r io.Reader) (err error) {
		run.Losses, err = losses.Read(r)
		return err
	})
}

func (f *Folder) readPeaks(run *snapshot.Run, rank int) {
	f.readTable(run, rank, "peaks", func(r io.Reader) (err error) {
		run.Peaks, err = peaks.Read(r)
		return err
	})
}

// readTable reads a table of a rank. A run is of use without it, so that its faults are notes.
func (f *Folder) readTable(run *snapshot.Run, rank int, name string, read func(io.Reader) error) {
	file := rundir.TableName(name, rank)
	if !f.list.others[file] {
		return
	}
	path := filepath.Join(run.Path, file)
	table, _, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		run.Files = append(run.Files, path)
		err = errors.Join(read(io.LimitReader(table, maxTable)), table.Close())
	}
	if err != nil {
		run.Notes = append(run.Notes, fmt.Sprintf("%s: the %s were not read: %v; what follows there is not read", path, name, err))
	}
}
