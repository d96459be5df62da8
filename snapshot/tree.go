package snapshot

import (
	"slices"
	"time"
)

// Tree is what the system said of the processes of a command, moment by moment.
type Tree struct {
	Processes []TreeProcess // in the order in which they were first seen
	Host      []HostPoint
}

// ProcessAt is the process that had a PID at a moment; nil if none is known. Its life is only known to the nearest looks: it may have
// begun after the look before its first. It had ended when the look after its last one reached it, which, with many processes, may be
// when the next look begins.
func (t *Tree) ProcessAt(pid int, at time.Time) *TreeProcess {
	const after = 2
	look := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(t.Host, at, func(h HostPoint, at time.Time) int { return h.Time.Compare(at) })
		return i
	}
	for i := range slices.Backward(t.Processes) { // the later process if a PID was reused immediately
		p := &t.Processes[i]
		if p.PID != pid {
			continue
		}
		from, to := p.Points[0].Time, p.Points[len(p.Points)-1].Time
		if first := look(from); first > 0 {
			from = t.Host[first-1].Time
		}
		if last := look(to) + after; last < len(t.Host) {
			to = t.Host[last].Time
		} else if at.After(to) {
			to = at // no look came any more
		}
		if !at.Before(from) && !at.After(to) {
			return p
		}
	}
	return nil
}

// TreeProcess is one process of a tree. A number that is used again is another process: it
// started at another time.
type TreeProcess struct {
	PID, Parent int
	Started     int64 // in ticks of the system's clock
	// Role is what a person would call it: "loader worker 3", "rank 1", "train.py".
	Role   string
	Points []ProcessPoint // at least one, in the order of time
}

// ProcessPoint is the memory of a process at a moment: its resident memory by kind, and its swapped memory.
type ProcessPoint struct {
	Time      time.Time
	Recorded  bool  // an agent in it takes snapshots
	Anonymous Bytes // pages of no file: heaps, stacks
	File      Bytes // pages of files, which the kernel can take back
	Shared    Bytes // shared memory, which others may have, too
	Swapped   Bytes
	PSS       Bytes // its proportional share; Unknown if not read or not available
	// OfOthers is what of Anonymous is the share of others that have the same pages, as after a fork; Unknown as PSS is.
	OfOthers Bytes
	// Written is what the process has written since it began, to whatever files; Unknown while there is no shared memory that it
	// may have written.
	Written Bytes
}

// HostPoint is the whole tree at a moment, and its control group. Unknown values are Unknown.
type HostPoint struct {
	Time      time.Time
	Processes int
	RSS, PSS  Bytes
	Group     Group
	// Segments are this user's files of shared memory in /dev/shm that came into being since the
	// command began. Another of his programs may have made those that are not named for a process.
	Segments     int64
	SegmentBytes Bytes
	Folder       string // the deepest folder with most of their size; "" if they have no names
}

// KernelKilled begins what a run says of itself if the kernel killed one of its processes since memory ran out.
const KernelKilled = "the kernel killed a process: "

// Group is the memory of a control group.
type Group struct {
	Current, Peak, Limit    Bytes
	Anonymous, File, Shared Bytes
	Kernel                  Bytes // of the kernel's own for them, which it cannot take back: sockets, pipes, open files
	// LimitReached and Killed count how often the limit was reached, and how often the
	// kernel killed a process of the group since memory ran out.
	LimitReached, Killed int64
	// Others are the processes in the group that are none of the tree.
	Others int64
}
