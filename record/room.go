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

// room is how much more memory a process may take, as the agent's _room.py has it: what
// the machine has left, and each control group that the process is in. It is Unknown
// where the system does not tell.
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

// Room is how much more memory this process may take; Unknown where the system does not tell.
func Room() snapshot.Bytes { return room(procFolder, groupsFolder, os.Getpid()) }

// roomOfGroups is the least that a group and those above it have left. A container may
// see the whole path and of the groups only its own, as the top.
func roomOfGroups(top, group, limit, used, cached string) snapshot.Bytes {
	left := snapshot.Bytes(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		here := filepath.Join(top, group)
		if most, err := parse(text(filepath.Join(here, limit))); err == nil { // else it is "max", or not there
			now, err := parse(text(filepath.Join(here, used)))
			dropped, _ := entry(filepath.Join(here, "memory.stat"), cached) // 0 where it is not known
			if err == nil {
				left = min(left, most-now+dropped)
			}
		}
		if group == "/" {
			return left
		}
	}
}

// entry is the number that a line of a file begins with a key and has.
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

// text is a file's; "" where it cannot be read.
func text(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}
