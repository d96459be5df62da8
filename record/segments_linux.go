package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// named adds the files in a folder and those below, of this user, but for PyTorch's that are named for a process that lives and
// is not ours, and those that others have. It reports whether the folder can be read.
func (s *segments) named(dir string, ours func(pid int) bool, others *outsiders) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	_ = f.Close()
	var news []fs.FileInfo
	looked := 0
	// With the slash a folder that is a link, as /dev/shm may be, is followed.
	_ = filepath.WalkDir(dir+"/", func(_ string, e fs.DirEntry, err error) error { // no error of ours
		if looked++; looked > mostSegments {
			return fs.SkipAll
		}
		// Another user's folder has an error, and no file that is ours.
		if err == nil && !e.IsDir() && !othersTensors(e.Name(), ours) {
			if info, err := e.Info(); err == nil && s.counts(info) {
				news = append(news, info)
			}
		}
		return nil
	})
	for _, info := range others.without(news, ours) {
		s.add(info)
	}
	return true
}

// othersTensors reports whether a file is one of PyTorch's that is named for a process that lives and is not ours.
func othersTensors(file string, ours func(pid int) bool) bool {
	m := torchSegment.FindStringSubmatch(file)
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	_, lives := readStat(pid)
	return err != nil || lives && !ours(pid)
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

// counts reports whether a file is of this user, and new.
func (s *segments) counts(info fs.FileInfo) bool {
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(at.Uid) == os.Getuid() && !info.ModTime().Before(s.since) && !s.seen[at.Ino]
}

func (s *segments) add(info fs.FileInfo) {
	if !s.counts(info) {
		return
	}
	at := info.Sys().(*syscall.Stat_t)
	s.seen[at.Ino] = true
	s.n++
	s.size += snapshot.Bytes(at.Blocks) * 512
}

// mostSegments bounds a look at a folder.
const mostSegments = 10_000

// countSegments counts those of processes, in a folder and by descriptor; -1 and Unknown where neither can be known.
func countSegments(dir string, tree []process, since time.Time, others *outsiders) (int64, snapshot.Bytes) {
	in := make(map[int]bool, len(tree))
	for _, p := range tree {
		in[p.pid] = true
	}
	s := &segments{since: since, seen: make(map[uint64]bool)}
	known := s.named(dir, func(pid int) bool { return in[pid] }, others)
	for _, p := range tree[:min(len(tree), mostProcesses)] {
		s.open(p.pid)
	}
	if !known && s.n == 0 {
		return -1, snapshot.Unknown
	}
	return s.n, s.size
}

// outsiders knows which files of shared memory processes have that are not the command's: of another training of the same
// user, say. Whoever has a file at first has made it, or is handed it by who did.
type outsiders struct {
	has  map[uint64]bool // by inode
	rest time.Time       // until then nobody is asked, or it would cost too much
}

// without returns the files that no outsider has mapped. Those that nobody has looked at yet come with a later call.
func (o *outsiders) without(files []fs.FileInfo, ours func(pid int) bool) (out []fs.FileInfo) {
	inode := func(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
	begun := processorTime()
	if time.Now().After(o.rest) && slices.ContainsFunc(files, func(f fs.FileInfo) bool { _, known := o.has[inode(f)]; return !known }) {
		mapped := make(map[uint64]bool)
		entries, _ := os.ReadDir("/proc") // what was read before an error counts
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && !ours(pid) {
				sharedOf(pid, mapped)
			}
		}
		before := o.has
		o.has = make(map[uint64]bool, len(files)) // what is gone is forgotten
		for _, f := range files {
			has, known := before[inode(f)]
			o.has[inode(f)] = known && has || !known && mapped[inode(f)]
		}
		o.rest = time.Now().Add(time.Duration(float64(processorTime()-begun) / hostShare))
	}
	for _, f := range files {
		if has, known := o.has[inode(f)]; known && !has {
			out = append(out, f)
		}
	}
	return out
}

// sharedOf adds the files of shared memory that a process has mapped. To list what it has mapped takes the kernel long, and few have
// any shared memory.
func sharedOf(pid int, to map[uint64]bool) {
	if text, err := os.ReadFile(procFile(pid, "status")); err != nil {
		return // it has ended
	} else if st := parseStatus(text); st.split && st.shared == 0 {
		return
	}
	text, err := os.ReadFile(procFile(pid, "maps"))
	if err != nil {
		return // it has ended, or is another user's
	}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, " /dev/shm/") {
			continue
		}
		if inode, err := strconv.ParseUint(strings.Fields(line)[4], 10, 64); err == nil {
			to[inode] = true
		}
	}
}
