package record

import (
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// groupFiles names the files and keys of a memory control group. There are two versions.
type groupFiles struct {
	current, peak, limit                string
	anonymous, file, shared             string // keys of memory.stat
	events, reached, eventsKill, killed string // files and the keys in them; with key "" the file is a single number
}

var (
	groupV1 = groupFiles{
		"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.limit_in_bytes", "total_rss", "total_cache", "total_shmem",
		"memory.failcnt", "", "memory.oom_control", "oom_kill",
	}
	groupV2 = groupFiles{
		"memory.current", "memory.peak", "memory.max", "anon", "file", "shmem",
		"memory.events", "max", "memory.events", "oom_kill",
	}
)

// group reads the memory control group of a process. All fields are Unknown if there is none.
func group(proc, groups string, pid int, ours func(pid int) bool) snapshot.Group {
	if at, ok := groupOf(proc, groups, pid); ok {
		if g, ok := at.read(ours); ok {
			return g
		}
	}
	return snapshot.Group{
		Current: snapshot.Unknown, Peak: snapshot.Unknown, Limit: snapshot.Unknown, Anonymous: snapshot.Unknown,
		File: snapshot.Unknown, Shared: snapshot.Unknown, Kernel: snapshot.Unknown, LimitReached: -1, Killed: -1, Others: -1,
	}
}

// groupFolder is the folder of a control group that counts memory, below the top one.
type groupFolder struct {
	*groupFiles
	dir, top string
}

// groupOf finds the memory control group of a process: of the second version where that counts memory, else of the first.
func groupOf(proc, groups string, pid int) (groupFolder, bool) {
	for line := range strings.Lines(text(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		top, files := groups, &groupV2
		if slices.Contains(strings.Split(fields[1], ","), "memory") {
			top, files = filepath.Join(groups, "memory"), &groupV1
		} else if fields[0] != "0" {
			continue
		}
		for _, dir := range []string{filepath.Join(top, path.Clean("/"+fields[2])), top} { // in a container the process's own group is the top
			at := groupFolder{files, dir, top}
			if at.number(files.current, "") >= 0 {
				return at, true
			}
		}
	}
	return groupFolder{}, false
}

// number reads the number in a file, or at a key in it. It is Unknown if there is none.
func (n *groupFolder) number(file, key string) snapshot.Bytes {
	file = filepath.Join(n.dir, file)
	if key != "" {
		if v, found := entry(file, key); found {
			return v
		}
		return snapshot.Unknown
	}
	if v, err := parse(text(file)); err == nil {
		return v
	}
	return snapshot.Unknown
}

// ownLimit is the group's own memory limit; Unknown for none.
func (n *groupFolder) ownLimit() snapshot.Bytes {
	if limit := n.number(n.limit, ""); limit <= math.MaxInt64/2 {
		return limit
	}
	return snapshot.Unknown // version 1 uses the largest number for no limit
}

// least is the lowest limit of the group and of its parents; Unknown for none.
func (n groupFolder) least() snapshot.Bytes {
	least := n.ownLimit()
	for n.dir != n.top && len(n.dir) > len(n.top) {
		n.dir = filepath.Dir(n.dir)
		if limit := n.ownLimit(); limit >= 0 && (least < 0 || limit < least) {
			least = limit
		}
	}
	return least
}

// read reads the group's figures. ok is false if the group no longer exists.
func (n *groupFolder) read(ours func(pid int) bool) (g snapshot.Group, ok bool) {
	if g.Current = n.number(n.current, ""); g.Current < 0 {
		return g, false
	}
	g.Peak, g.Limit = n.number(n.peak, ""), n.ownLimit()
	g.Anonymous, g.File, g.Shared = n.number("memory.stat", n.anonymous), n.number("memory.stat", n.file), n.number("memory.stat", n.shared)
	g.Kernel = n.kernel()
	g.LimitReached, g.Killed = int64(n.number(n.events, n.reached)), int64(n.number(n.eventsKill, n.killed))
	for word := range strings.FieldsSeq(text(filepath.Join(n.dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(word); err == nil && g.Others < mostOthers && !ours(pid) {
			g.Others++
		}
	}
	return g, true
}

// kernel is the kernel memory of the group that cannot be reclaimed. It is Unknown with version 1, which does not separate the two:
// cached directory entries stay until the kernel needs their memory.
func (n *groupFolder) kernel() snapshot.Bytes {
	all, again := n.number("memory.stat", "kernel"), n.number("memory.stat", "slab_reclaimable")
	if all < 0 || again < 0 {
		return snapshot.Unknown
	}
	return max(0, all-again) + max(0, n.number("memory.stat", "sock"))
}

// mostOthers is how many processes that are not the command's are counted in a group at most.
const mostOthers = 16
