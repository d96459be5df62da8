package record

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// room is how much more memory a process may take: the least of what the machine has left and what each of the process's control groups
// has left. It follows the agent's _room.py. It is Unknown if the system does not report it.
func room(proc, groups string, pid int) snapshot.Bytes {
	left := snapshot.Bytes(math.MaxInt64)
	if kib, ok := entry(filepath.Join(proc, "meminfo"), "MemAvailable:"); ok {
		left = kib << 10
	}
	for line := range strings.Lines(text(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		switch {
		case fields[0] == "0":
			left = min(left, roomOfGroups(groups, fields[2], "memory.max", "memory.current", "inactive_file"))
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			left = min(left, roomOfGroups(filepath.Join(groups, "memory"), fields[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
		}
	}
	if left == math.MaxInt64 {
		return snapshot.Unknown
	}
	return max(left, 0)
}

// Room is how much more memory this process may take; Unknown if the system does not report it.
func Room() snapshot.Bytes { return room(procFolder, groupsFolder, os.Getpid()) }

// roomOfGroups is the least that a group and its parents have left. A container may see the whole path but only its own group, as the
// top folder.
func roomOfGroups(top, group, limit, used, cached string) snapshot.Bytes {
	left := snapshot.Bytes(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		here := filepath.Join(top, group)
		if most, err := parse(text(filepath.Join(here, limit))); err == nil { // otherwise it is "max" or does not exist
			now, err := parse(text(filepath.Join(here, used)))
			dropped, _ := entry(filepath.Join(here, "memory.stat"), cached) // 0 if unknown
			if err == nil {
				left = min(left, most-now+dropped)
			}
		}
		if group == "/" {
			return left
		}
	}
}

// entry is the number after a key at the start of a line in a file.
func entry(file, key string) (snapshot.Bytes, bool) {
	for line := range strings.Lines(text(file)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			n, err := parse(fields[1])
			return n, err == nil
		}
	}
	return 0, false
}

func parse(number string) (snapshot.Bytes, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	return snapshot.Bytes(n), err
}

// text is a file's content; "" if it cannot be read.
func text(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}
