package files

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxChildren bounds the processes of a run that are read beside the one that is judged; the agent
// records fewer.
const maxChildren = 256

// readChildren reads the snapshots of the processes that were recorded beside the one of a run's rank,
// where they are read with it.
func (o Opener) readChildren(run *snapshot.Run, names *namePatterns) {
	entries, err := os.ReadDir(run.Path)
	if err != nil {
		return // the run's own files were read
	}
	of := make(map[int][]string)
	for _, e := range entries {
		if n := rundir.ChildOf(e.Name()); n > 0 && rundir.IsRecordedSnapshot(e.Name()) {
			of[n] = append(of[n], e.Name())
		}
	}
	numbers := make([]int, 0, len(of))
	for n := range of {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers[:min(len(numbers), maxChildren)] {
		child := &snapshot.Run{Path: run.Path, Info: run.Info}
		child.Info.Steps, child.Info.Unseen, child.Info.Notes = 0, nil, nil
		r := &runReader{run: child, opener: o, into: newShared(o.MaxUnpacked), names: names}
		slices.SortFunc(of[n], func(a, b string) int {
			x, _ := rundir.TickOf(a)
			y, _ := rundir.TickOf(b)
			return cmp.Compare(x, y)
		})
		for _, name := range of[n] {
			s, err := r.open(name)
			if err != nil || s == nil {
				continue // it is among the notes
			}
			child.Snapshots = append(child.Snapshots, s)
		}
		run.Files, run.Notes = append(run.Files, child.Files...), append(run.Notes, child.Notes...)
		run.Unread = append(run.Unread, child.Unread...)
		run.Partial = run.Partial || child.Partial
		if len(child.Snapshots) == 0 {
			continue
		}
		last := child.Snapshots[len(child.Snapshots)-1]
		child.Role, child.PID = cmp.Or(last.Role, fmt.Sprintf("child %d", n)), last.PID
		child.Notes, child.Unread = nil, nil
		run.Children = append(run.Children, child)
	}
	nameAlike(run)
}

// lookApart is more than lies between two looks at a process.
const lookApart = 3 * time.Second

// nameAlike gives a process the same role in the tree and beside the run: what its agent says is more than that it is a fork of
// its parent, and that is more than its parent's name.
func nameAlike(run *snapshot.Run) {
	if run.Tree == nil {
		return
	}
	for _, child := range run.Children {
		for i := range run.Tree.Processes {
			p := &run.Tree.Processes[i]
			taken := child.Snapshots[0].Mark.Time // not of another process that had the number before, or has it since
			switch parent, forked := strings.CutPrefix(p.Role, "fork of "); {
			case p.PID != child.PID || taken.Before(p.Points[0].Time) || taken.After(p.Points[len(p.Points)-1].Time.Add(lookApart)):
			case forked && parent == child.Role:
				child.Role = p.Role
			default:
				p.Role = child.Role
			}
		}
	}
}
