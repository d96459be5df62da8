package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxTree bounds a table of processes in bytes.
const maxTree = 256 << 20

// readTree reads the table of the command's processes: the rank's own if there is one; else the table of all ranks, which is read with
// the lowest. The run is useful without it, so its faults become notes.
func (f *Folder) readTree(run *snapshot.Run, rank int) {
	if !f.bringsTree(run, rank) {
		return
	}
	suffix := ""
	if f.ownTree(run, rank) {
		suffix = rundir.RankSuffix(rank)
	}
	tree := &snapshot.Tree{}
	followed := run.Info.Followed // with a table of processes, as memdiag records since it has the control group
	read := func(name string, decode func(io.Reader) error) {
		path := filepath.Join(run.Path, name+suffix+".csv")
		table, _, err := openRegular(path)
		if errors.Is(err, fs.ErrNotExist) && !followed {
			return // of an older memdiag, or of no Linux
		}
		if err == nil {
			run.Files = append(run.Files, path)
			err = errors.Join(decode(io.LimitReader(table, maxTree)), table.Close())
		}
		if errors.Is(err, processes.ErrCut) {
			run.Notes, err = append(run.Notes, fmt.Sprintf("%s: %v", path, processes.ErrCut)), nil
		}
		if err != nil {
			run.Partial = true
			run.Notes = append(run.Notes, fmt.Sprintf("%s: the processes were not read: %v; what follows there is not read", path, err))
		}
	}
	read("host", func(r io.Reader) (err error) {
		var group bool
		tree.Host, group, err = processes.ReadHost(r)
		followed = followed || group
		if (err == nil || errors.Is(err, processes.ErrCut)) && endsEarly(tree.Host, run.Snapshots) {
			err = errors.New("it ends before the run does")
		}
		return err
	})
	read("processes", func(r io.Reader) (err error) {
		if tree.Processes, err = processes.Read(r); err == nil && len(tree.Processes) == 0 {
			err = errors.New("it has no line")
		}
		if err == nil && cutShort(tree) {
			err = errors.New("it ends before the run does")
		}
		return err
	})
	if len(run.Snapshots) > 0 { // the table may end before the process took snapshots, as on a full disk
		last := run.Snapshots[len(run.Snapshots)-1]
		for _, p := range tree.Processes {
			if p.PID == last.PID {
				p.Points[len(p.Points)-1].Recorded = true
			}
		}
	}
	if len(tree.Processes)+len(tree.Host) > 0 {
		run.Tree = tree
	}
}

// endsEarly reports whether looks at the tree ended before the snapshots did, as when memdiag was killed or the disk was full. The
// difference must exceed 30 s plus twice the longest time between two looks, since looks at many processes are far apart.
func endsEarly(looks []snapshot.HostPoint, snapshots []*snapshot.Snapshot) bool {
	const between = 30 * time.Second
	if len(looks) == 0 || len(snapshots) == 0 {
		return false
	}
	apart := time.Duration(0)
	for i := range looks[1:] {
		apart = max(apart, looks[i+1].Time.Sub(looks[i].Time))
	}
	return snapshots[len(snapshots)-1].Mark.Time.Sub(looks[len(looks)-1].Time) > between+2*apart
}

// cutShort reports whether there are lines of the tree after the last of its processes: all but those of
// processes that were exiting, and have no memory any more, are written at the same looks.
func cutShort(tree *snapshot.Tree) bool {
	const exiting = 3
	last := len(tree.Host) - 1 - exiting
	return last >= 0 && tree.Host[last].RSS > 0 && !slices.ContainsFunc(tree.Processes, func(p snapshot.TreeProcess) bool {
		return !p.Points[len(p.Points)-1].Time.Before(tree.Host[last].Time)
	})
}

// ownTree reports whether a rank was recorded separately.
func (f *Folder) ownTree(run *snapshot.Run, rank int) bool {
	name := rundir.TableName("host", rank)
	return rank != snapshot.NoRank && f.list.others[name] && isRegular(filepath.Join(run.Path, name))
}

// bringsTree reports whether the command's processes are read with a rank.
func (f *Folder) bringsTree(run *snapshot.Run, rank int) bool {
	return f.ownTree(run, rank) || len(run.Ranks) == 0 || rank == run.Ranks[0]
}
