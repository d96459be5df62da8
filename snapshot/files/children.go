package files

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// maxChildren bounds the processes of a run that are read beside the one that is judged; the agent
// records fewer.
const maxChildren = 256

// readChildren reads the snapshots of the processes that were recorded beside the one of a run's rank, if they are read with it.
func (f *Folder) readChildren(run *snapshot.Run) {
	of := make(map[int][]string)
	for _, name := range f.list.beside {
		if n := rundir.ChildOf(name); n > 0 {
			of[n] = append(of[n], name)
		}
	}
	numbers := make([]int, 0, len(of))
	for n := range of {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers[:min(len(numbers), maxChildren)] {
		f.readBeside(run, of[n], fmt.Sprintf("child %d", n))
	}
	nameAlike(run)
	numberAlike(run)
}

// readBeside adds the process of these files to a run's children, if any can be read. It gets the role if the files have none.
func (f *Folder) readBeside(run *snapshot.Run, files []string, role string) *snapshot.Run {
	child := &snapshot.Run{Path: run.Path, Info: run.Info}
	child.Info.Steps, child.Info.Unseen, child.Info.Notes = 0, nil, nil
	r := &runReader{run: child, opener: f.opener, into: f.opener.newShared(), names: f.names}
	slices.SortFunc(files, func(a, b string) int {
		x, _ := rundir.TickOf(a)
		y, _ := rundir.TickOf(b)
		return cmp.Compare(x, y)
	})
	ahead := openAhead(run.Path, files)
	for _, name := range files {
		if s := r.readFile(name, ahead); s != nil { // else it is among the notes
			child.Snapshots = append(child.Snapshots, s)
		}
	}
	run.Files, run.Notes = append(run.Files, child.Files...), append(run.Notes, child.Notes...)
	run.Unread = append(run.Unread, child.Unread...)
	run.Partial = run.Partial || child.Partial
	if len(child.Snapshots) == 0 {
		return nil
	}
	last := child.Snapshots[len(child.Snapshots)-1]
	child.Role, child.PID = cmp.Or(last.Role, role), last.PID
	child.Notes, child.Unread = nil, nil
	run.Children = append(run.Children, child)
	return child
}

// nameAlike gives a process the same role in the tree and beside the run: what its agent says is more than that it is a fork of
// its parent, and that is more than its parent's name.
func nameAlike(run *snapshot.Run) {
	if run.Tree == nil {
		return
	}
	for _, child := range run.Children {
		p := run.Tree.ProcessAt(child.PID, child.Snapshots[0].Mark.Time) // not another that had the number before, or has it since
		if p == nil {
			continue
		}
		child.Started = p.Started
		if parent, forked := strings.CutPrefix(p.Role, "fork of "); forked && parent == child.Role {
			child.Role = p.Role
		} else {
			p.Role = child.Role
		}
	}
}

// numberAlike numbers processes of one role that existed at the same time, in the order in which they began: forks of a program that
// multiprocessing did not make, and actors of one class. A process that replaces another gets its number, such as a loader worker of
// the next epoch. If more than mostAlike exist at the same time, none gets a number.
func numberAlike(run *snapshot.Run) {
	if run.Tree == nil {
		return
	}
	alike := make(map[string][]*snapshot.TreeProcess)
	for i := range run.Tree.Processes {
		p := &run.Tree.Processes[i]
		alike[p.Role] = append(alike[p.Role], p)
	}
	children := make(map[int][]*snapshot.Run) // by process number
	for _, child := range run.Children {
		children[child.PID] = append(children[child.PID], child)
	}
	for role, all := range alike {
		bare, rank := role, ""
		if at := strings.LastIndex(role, " of rank "); at >= 0 {
			bare, rank = role[:at], role[at:]
		}
		numbered := func(n int) string {
			if of, forked := strings.CutPrefix(bare, "fork of "); forked {
				return fmt.Sprintf("fork %d of %s%s", n, of, rank)
			}
			return fmt.Sprintf("%s %d%s", bare, n, rank)
		}
		first := 1
		if bare == "loader worker" {
			first = 0 // as PyTorch counts
		}
		_, named := alike[numbered(first)]
		if bare == "" || strings.HasPrefix(bare, "rank ") || unicode.IsDigit(rune(bare[len(bare)-1])) || !named && !atOnce(all) {
			continue
		}
		numbers, ok := numbersOf(all, first, func(n int) []*snapshot.TreeProcess { return alike[numbered(n)] })
		if !ok {
			continue
		}
		for i, p := range all {
			for _, child := range children[p.PID] {
				if child.Is(p) && child.Role == role {
					child.Role = numbered(numbers[i])
				}
			}
			p.Role = numbered(numbers[i])
		}
	}
}

// mostAlike bounds how many processes of one role that exist at the same time get numbers: twice as many as are recorded at a time.
const mostAlike = 1024

// numbersOf gives each process the lowest number that no other process has at the same time, neither of these nor of those that already
// have such a name. It fails if there are too many at the same time.
func numbersOf(all []*snapshot.TreeProcess, first int, named func(n int) []*snapshot.TreeProcess) (numbers []int, ok bool) {
	type number struct {
		until time.Time // when the last one ended that got it here
		named *spans
	}
	var taken []number
	for _, p := range all {
		at := 0
		for ; ; at++ {
			if at == mostAlike {
				return nil, false
			}
			if at == len(taken) {
				taken = append(taken, number{named: newSpans(named(first + at))})
			}
			if p.Points[0].Time.After(taken[at].until) && !taken[at].named.overlap(p) {
				break
			}
		}
		taken[at].until = p.Points[len(p.Points)-1].Time
		numbers = append(numbers, first+at)
	}
	return numbers, true
}

// spans are the lifetimes of processes, in the order in which they began.
type spans struct {
	begin []time.Time
	until []time.Time // the latest end of the processes so far
}

func newSpans(of []*snapshot.TreeProcess) *spans {
	s := &spans{}
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b *snapshot.TreeProcess) int { return a.Points[0].Time.Compare(b.Points[0].Time) })
	for i, p := range of {
		end := p.Points[len(p.Points)-1].Time
		if i > 0 && s.until[i-1].After(end) {
			end = s.until[i-1]
		}
		s.begin, s.until = append(s.begin, p.Points[0].Time), append(s.until, end)
	}
	return s
}

// overlap reports whether any of them was there together with a process.
func (s *spans) overlap(p *snapshot.TreeProcess) bool {
	end := p.Points[len(p.Points)-1].Time
	begun := sort.Search(len(s.begin), func(i int) bool { return s.begin[i].After(end) })
	return begun > 0 && !s.until[begun-1].Before(p.Points[0].Time)
}

// atOnce reports whether any two of the processes, which are in the order in which they were first seen, existed at the same time.
func atOnce(all []*snapshot.TreeProcess) bool {
	until := all[0].Points[len(all[0].Points)-1].Time
	for _, p := range all[1:] {
		if !p.Points[0].Time.After(until) {
			return true
		}
		until = p.Points[len(p.Points)-1].Time
	}
	return false
}
