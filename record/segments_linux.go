package record

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// torchSegment is a file of shared memory that PyTorch names for the process that made it.
var torchSegment = regexp.MustCompile(`^torch_([0-9]+)_`)

// segments are the files of shared memory in a folder, of this user, that came into being since a
// time: all of them, or those alone that are known to be of processes that are ours or have ended.
func segments(dir string, since time.Time, all bool, ours func(pid int) bool) (n int64, size snapshot.Bytes) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return -1, snapshot.Unknown
	}
	for _, e := range entries[:min(len(entries), mostSegments)] {
		if !all {
			m := torchSegment.FindStringSubmatch(e.Name())
			if m == nil {
				continue
			}
			pid, err := strconv.Atoi(m[1])
			if _, lives := readStat(pid); err != nil || lives && !ours(pid) {
				continue
			}
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if at, ok := info.Sys().(*syscall.Stat_t); ok && int(at.Uid) == os.Getuid() && info.ModTime().After(since) {
			n++
			size += snapshot.Bytes(at.Blocks) * 512
		}
	}
	return n, size
}

// mostSegments bounds a look at a folder.
const mostSegments = 10_000
