package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// torchSegment is a file of shared memory that PyTorch names for the process that made it.
var torchSegment = regexp.MustCompile(`^torch_([0-9]+)_`)

// segments are files of shared memory that came into being since a time, each counted once.
type segments struct {
	since time.Time
	seen  map[uint64]bool // inodes
	n     int64
	size  snapshot.Bytes
}

// named adds the files in a folder, of this user, but for PyTorch's that are named for a process that lives and is not ours.
// It reports whether the folder can be read.
func (s *segments) named(dir string, ours func(pid int) bool) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries[:min(len(entries), mostSegments)] {
		if m := torchSegment.FindStringSubmatch(e.Name()); m != nil {
			pid, err := strconv.Atoi(m[1])
			if _, lives := readStat(pid); err != nil || lives && !ours(pid) {
				continue
			}
		}
		if info, err := e.Info(); err == nil {
			s.add(info)
		}
	}
	return true
}

// open adds the files that a process has open and that have no name, or none any more: PyTorch hands tensors
// over so unless another way is chosen.
func (s *segments) open(pid int) {
	dir := procFile(pid, "fd")
	f, err := os.Open(dir)
	if err != nil {
		return // it has ended, or is another user's
	}
	names, _ := f.Readdirnames(mostSegments) // what was read before an error counts
	_ = f.Close()
	for _, name := range names {
		path := filepath.Join(dir, name)
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/dev/shm/") && !strings.HasPrefix(to, "/memfd:") {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			s.add(info)
		}
	}
}

func (s *segments) add(info fs.FileInfo) {
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(at.Uid) != os.Getuid() || info.ModTime().Before(s.since) || s.seen[at.Ino] {
		return
	}
	s.seen[at.Ino] = true
	s.n++
	s.size += snapshot.Bytes(at.Blocks) * 512
}

// mostSegments bounds a look at a folder.
const mostSegments = 10_000

// countSegments counts those of processes, in a folder and by descriptor; -1 and Unknown where neither can be known.
func countSegments(dir string, tree []process, since time.Time) (int64, snapshot.Bytes) {
	in := make(map[int]bool, len(tree))
	for _, p := range tree {
		in[p.pid] = true
	}
	s := &segments{since: since, seen: make(map[uint64]bool)}
	known := s.named(dir, func(pid int) bool { return in[pid] })
	for _, p := range tree[:min(len(tree), mostProcesses)] {
		s.open(p.pid)
	}
	if !known && s.n == 0 {
		return -1, snapshot.Unknown
	}
	return s.n, s.size
}
