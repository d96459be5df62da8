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

// groupFiles name the figures of a memory control group, of which there are two versions.
type groupFiles struct {
	current, peak, limit                string
	anonymous, file, shared             string // keys of memory.stat
	events, reached, eventsKill, killed string // files and keys in them; a key of "" is the file's only number
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

// group reads the memory control group of a process: of the second version where that counts
// memory, else of the first. All is Unknown where there is none.
func group(proc, groups string, pid int, ours func(pid int) bool) snapshot.Group {
	found := snapshot.Group{
		Current: snapshot.Unknown, Peak: snapshot.Unknown, Limit: snapshot.Unknown, Anonymous: snapshot.Unknown,
		File: snapshot.Unknown, Shared: snapshot.Unknown, LimitReached: -1, Killed: -1, Others: -1,
	}
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
		for _, dir := range []string{filepath.Join(top, path.Clean("/"+fields[2])), top} { // in a container its own is the top
			if g, ok := files.read(dir, ours); ok {
				return g
			}
		}
	}
	return found
}

// read is not ok of a folder that counts no memory, as the top of the second version.
func (n *groupFiles) read(dir string, ours func(pid int) bool) (g snapshot.Group, ok bool) {
	number := func(file, key string) snapshot.Bytes {
		file = filepath.Join(dir, file)
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
	if g.Current = number(n.current, ""); g.Current < 0 {
		return g, false
	}
	g.Peak, g.Limit = number(n.peak, ""), number(n.limit, "")
	if g.Limit > math.MaxInt64/2 {
		g.Limit = snapshot.Unknown // the first version has the largest number for none
	}
	g.Anonymous, g.File, g.Shared = number("memory.stat", n.anonymous), number("memory.stat", n.file), number("memory.stat", n.shared)
	g.LimitReached, g.Killed = int64(number(n.events, n.reached)), int64(number(n.eventsKill, n.killed))
	for word := range strings.FieldsSeq(text(filepath.Join(dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(word); err == nil && g.Others < mostOthers && !ours(pid) {
			g.Others++
		}
	}
	return g, true
}

// mostOthers is how many processes of others are counted in a group.
const mostOthers = 16
