package record

import (
	"path/filepath"

	"github.com/memdiag/memdiag/snapshot"
)

// segments are files of shared memory that came into being since the command began. n is -1 and size Unknown where they cannot be
// known.
type segments struct {
	n    int64
	size snapshot.Bytes
	in   map[string]snapshot.Bytes // by folder, of those that have names
}

// folder is the deepest one that has two thirds of what the files with names take; "" for none.
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
		if all > 0 && 3*size >= 2*all && len(dir) > len(deepest) { // two that have so much lie in each other
			deepest = dir
		}
	}
	return deepest
}

// writtenBy is what a process has written since it began, to whatever; Unknown where the system does not tell.
func writtenBy(pid int) snapshot.Bytes {
	if n, ok := entry(procFile(pid, "io"), "wchar:"); ok {
		return n
	}
	return snapshot.Unknown
}
