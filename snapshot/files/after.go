package files

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// few is fewer snapshots than can be judged.
const few = 3

// readAfter reads, as a child of the run, what a rank's process did after its last step, when snapshots were taken at intervals:
// "train.py after step 4". They are not read if the process stepped again and could not remove the files from before. If there were too
// few steps to judge, they are the run itself.
func (f *Folder) readAfter(run *snapshot.Run, rank int) {
	if len(run.Snapshots) == 0 {
		return
	}
	of, after := []string(nil), max(1, run.Snapshots[len(run.Snapshots)-1].Mark.Step)
	for _, name := range f.afterOf[rank] {
		step := rundir.AfterOf(name)
		if step < after {
			continue
		}
		if step > after {
			of, after = nil, step
		}
		of = append(of, name)
	}
	child := f.readBeside(run, of, "the process")
	if child == nil {
		return
	}
	if len(run.Snapshots) < few && len(child.Snapshots) >= few {
		run.Notes = append(run.Notes, fmt.Sprintf("too few snapshots are of steps to judge them (%d): what came after step %d is judged", len(run.Snapshots), after))
		run.Snapshots, run.Children = child.Snapshots, run.Children[:len(run.Children)-1]
		return
	}
	role, rankOf, ranked := strings.Cut(child.Role, " of rank ")
	child.Role, child.AfterStep = fmt.Sprintf("%s after step %d", role, after), after
	if ranked {
		child.Role += " of rank " + rankOf
	}
	if run.Tree == nil {
		return
	}
	if p := run.Tree.ProcessAt(child.PID, child.Snapshots[0].Mark.Time); p != nil {
		child.Started = p.Started
	}
}
