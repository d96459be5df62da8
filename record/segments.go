package record

import (
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
)

// segments are the shared memory files created since the command began. If they cannot be known, n is -1 and size Unknown.
type segments struct {
	n    int64
	size snapshot.Bytes
	in   map[string]snapshot.Bytes // sizes by folder, for files that have names
}

// folder is the deepest folder that holds at least two thirds of the size of the named files; "" for none.
func (s *segments) folder() string {
	below, all := make(map[string]snapshot.Bytes), snapshot.Bytes(0)
	for dir, size := range s.in {
		all += size
		for ; ; dir = filepath.Dir(dir) {
			below[dir] += size
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	deepest := ""
	for dir, size := range below {
		if all > 0 && 3*size >= 2*all && len(dir) > len(deepest) { // two folders with that much contain one another
			deepest = dir
		}
	}
	return deepest
}

// writtenBy is how many bytes a process has written since it began, to any file; Unknown if the system does not report it.
func writtenBy(pid int) snapshot.Bytes {
	if n, ok := entry(procFile(pid, "io"), "wchar:"); ok {
		return n
	}
	return snapshot.Unknown
}
