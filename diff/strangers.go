package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// strangers says why a larger later snapshot cannot be growth: two consecutive snapshots are of different processes,
// or of parts of one process's record that have no block in common. at is the later one. why is "" if all can be
// compared.
func strangers(run *snapshot.Run) (why string, at int) {
	for i := 1; i < len(run.Snapshots); i++ {
		a, b := run.Snapshots[i-1], run.Snapshots[i]
		if why := apart(a, b); why != "" {
			which := "the snapshots"
			if len(run.Snapshots) > 2 {
				which = fmt.Sprintf("snapshots %d and %d of %d", i, i+1, len(run.Snapshots))
			}
			return which + " seem to be of different processes: " + why, i
		}
		if separate(a, b) {
			return separateRecordings, i
		}
	}
	return "", 0
}

// apart says why two snapshots are not of one process; "" if they may be.
func apart(a, b *snapshot.Snapshot) string {
	switch {
	case a.Producer != b.Producer:
		return fmt.Sprintf("they have different producers (%s and %s)", a.Producer, b.Producer)
	case a.Rank != b.Rank && a.Rank != snapshot.NoRank && b.Rank != snapshot.NoRank:
		return fmt.Sprintf("they are of different ranks (%d and %d)", a.Rank, b.Rank)
	case len(inUse(a)) > 0 && len(inUse(b)) > 0 && !shareDevice(inUse(a), inUse(b)):
		return fmt.Sprintf("they share no device (%s and %s)", series.DeviceOf(inUse(a)[0]), series.DeviceOf(inUse(b)[0]))
	case otherDevice(a, b) != "":
		return otherDevice(a, b)
	case series.Placed(a) && series.Placed(b) && !series.SameProcess(a, b):
		return "they share no memory segment, as snapshots of one process do"
	}
	return otherProgram(a, b)
}

const separateRecordings = "each snapshot has only allocations of its own recording, and the recordings do not overlap: " +
	"record from the program's start, or take snapshots of all live memory"

// separate reports whether two snapshots are parts of one process's record, of which the later knows nothing about
// the blocks of the earlier.
func separate(a, b *snapshot.Snapshot) bool {
	return a.History.Process != "" && a.History.Process == b.History.Process && !b.History.First.Before(a.History.Last)
}

// otherProgram names files of the stacks of two snapshots if they have no file of the user's in common; "" if they
// have one, or if one of them has no such file.
func otherProgram(a, b *snapshot.Snapshot) string {
	if a.Stacks == nil || b.Stacks == nil || shareStack(a, b) {
		return ""
	}
	of, another := "", ""
	files := make(map[string]bool)
	eachOwnFile(a, func(file string) bool {
		of = cmp.Or(of, file)
		files[file] = true
		return true
	})
	eachOwnFile(b, func(file string) bool {
		another = cmp.Or(another, file)
		if files[file] {
			another = ""
		}
		return !files[file]
	})
	if of == "" || another == "" {
		return ""
	}
	return fmt.Sprintf("their stacks share no file (%s and %s)", of, another)
}

// shareStack reports whether both have a live block with the same stack. It is quick for snapshots with one table of
// stacks, as in a run, and false for others.
func shareStack(a, b *snapshot.Snapshot) bool {
	if a.Stacks != b.Stacks {
		return false
	}
	live := make([]bool, a.Stacks.Len())
	for i, state := range a.Blocks.State {
		if id := a.Blocks.Stack[i]; state == snapshot.Live && id != snapshot.NoStack {
			live[id] = true
		}
	}
	for i, state := range b.Blocks.State {
		if id := b.Blocks.Stack[i]; state == snapshot.Live && id != snapshot.NoStack && live[id] {
			return true
		}
	}
	return false
}

// eachOwnFile calls yield with the file of each of the user's frames in the stacks of live blocks, until yield
// returns false.
func eachOwnFile(s *snapshot.Snapshot, yield func(file string) bool) {
	seen := make(map[snapshot.StackID]bool)
	for i, state := range s.Blocks.State {
		id := s.Blocks.Stack[i]
		if state != snapshot.Live || id == snapshot.NoStack || seen[id] {
			continue
		}
		seen[id] = true
		frames := s.Stacks.Frames(id)
		own := frame.Own(frames)
		for _, f := range frames {
			if f.File != "" && own(f) && !yield(f.File) {
				return
			}
		}
	}
}

// resumed is the part of a run after its last restart, if it is long enough to be judged alone; else nil.
func resumed(run *snapshot.Run) *snapshot.Run {
	all := run.Snapshots
	at := len(all) - 1
	for at > 0 && apart(all[at-1], all[at]) == "" {
		at--
	}
	if at == 0 || len(all)-at-series.WarmUp(len(all)-at) < series.Testable || !restarted(all[at-1], all[at]) {
		return nil
	}
	part := *run
	part.Snapshots, part.Notes = all[at:], append(slices.Clone(run.Notes), where(all, at)+"; the later part is judged alone")
	if run.Series != nil {
		series := *run.Series
		from := slices.IndexFunc(series.Points, func(p snapshot.Point) bool { return p.Mark.Step >= all[at].Mark.Step })
		if part.Series = nil; from >= 0 && all[at].Mark.Step > all[at-1].Mark.Step {
			series.Points = series.Points[from:]
			part.Series = &series
		}
	}
	return &part
}

// restarted reports whether two snapshots are of one program and rank, in different processes.
func restarted(a, b *snapshot.Snapshot) bool {
	return a.Producer == b.Producer && a.Rank == b.Rank && series.Placed(a) && series.Placed(b) && !series.SameProcess(a, b)
}

// where says where the process changes.
func where(all []*snapshot.Snapshot, at int) string {
	before, after := all[at-1].Mark.Step, all[at].Mark.Step
	if before == snapshot.NoStep || after == snapshot.NoStep {
		return fmt.Sprintf("the process changes after snapshot %d of %d, as when training is resumed", at, len(all))
	}
	return fmt.Sprintf("the process changes between steps %d and %d, as when training is resumed", before, after)
}

// restart is a note on a run whose process changes before the snapshot at, as when training is resumed; "" if either
// part has fewer than two snapshots.
func restart(run *snapshot.Run, at int) string {
	all := run.Snapshots
	if at < 2 || at > len(all)-2 {
		return ""
	}
	return where(all, at) + ": compare only the snapshots before it, or only those after"
}

// inUse returns the devices of a snapshot with reserved memory, since a file may list all devices of a machine; all
// of them if none has any. Compiled programs, which JAX creates before it uses a device, and autograd's graph are no
// devices.
func inUse(s *snapshot.Snapshot) []snapshot.Device {
	var all, used []snapshot.Device
	for _, d := range s.Devices {
		if d.Kind.Unsized() {
			continue
		}
		all = append(all, d)
		if d.Meters.Reserved != 0 {
			used = append(used, d)
		}
	}
	if used == nil {
		return all
	}
	return used
}

func shareDevice(a, b []snapshot.Device) bool {
	return slices.ContainsFunc(a, func(d snapshot.Device) bool {
		return slices.ContainsFunc(b, func(e snapshot.Device) bool { return d.Kind == e.Kind && d.Index == e.Index })
	})
}

// otherDevice names a device that has different names in a and b; "" for none.
func otherDevice(a, b *snapshot.Snapshot) string {
	for _, d := range a.Devices {
		for _, e := range b.Devices {
			if d.Kind == e.Kind && d.Index == e.Index && d.Name != e.Name && d.Name != "" && e.Name != "" {
				return fmt.Sprintf("%s is %s in one and %s in the other", series.DeviceOf(d), d.Name, e.Name)
			}
		}
	}
	return ""
}

// doubt makes a verdict inconclusive if the snapshots cannot be compared: then neither continued growth nor its end
// is known.
func (r *Result) doubt(j *judge.Judgement) {
	if !r.Comparable {
		j.Reasons, j.Rate = nil, Rate{}
		j.Call(Inconclusive, Weak, "%s; the difference is no growth", r.stranger)
	}
}
