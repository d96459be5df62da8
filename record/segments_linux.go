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

// sharedFiles are those in a folder of shared memory.
type sharedFiles struct {
	dir     string
	since   time.Time          // when the command began
	before  segments           // all that the file system had then
	without map[processID]used // those that had none open at the last look
	others  outsiders
}

func watchShared(dir string, since time.Time) sharedFiles {
	return sharedFiles{dir: dir, since: since, before: inUse(dir)}
}

// inUse is all that a file system has, of whomever. n is 0 where it does not count its files.
func inUse(dir string) (all segments) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		all.n, all.size = int64(fs.Files-fs.Ffree), snapshot.Bytes(fs.Blocks-fs.Bfree)*snapshot.Bytes(fs.Bsize)
	}
	return all
}

// found counts files that came into being since a time, each once.
type found struct {
	segments
	since time.Time
	seen  map[uint64]bool // inodes
	cut   bool            // there were too many to look at all
}

// file is one with its folder.
type file struct {
	fs.FileInfo
	dir string
}

// named adds the files in a folder and those below, of this user, but for PyTorch's that are named for a process that lives and
// is not ours, and those that others have. It reports whether the folder can be read.
func (s *found) named(dir string, ours func(pid int) bool, others *outsiders) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	_ = f.Close()
	var news []file
	looked := 0
	// With the slash a folder that is a link, as /dev/shm may be, is followed.
	_ = filepath.WalkDir(dir+"/", func(path string, e fs.DirEntry, err error) error { // no error of ours
		if looked++; looked > mostSegments {
			s.cut = true
			return fs.SkipAll
		}
		// Another user's folder has an error, and no file that is ours.
		if err == nil && !e.IsDir() && !othersTensors(e.Name(), ours) {
			if info, err := e.Info(); err == nil && s.counts(info) {
				news = append(news, file{info, filepath.Dir(path)})
			}
		}
		return nil
	})
	for _, of := range others.without(news, ours) {
		if size, ok := s.add(of.FileInfo); ok {
			s.in[of.dir] += size
		}
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
// over so unless another way is chosen. It reports whether there are any, counted or not.
func (s *found) open(pid int) (any bool) {
	dir := procFile(pid, "fd")
	f, err := os.Open(dir)
	if err != nil {
		return false // it has ended, or is another user's
	}
	names, _ := f.Readdirnames(mostSegments) // what was read before an error counts
	_ = f.Close()
	for _, name := range names {
		path := filepath.Join(dir, name)
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/dev/shm/") && !strings.HasPrefix(to, "/memfd:") {
			continue
		}
		any = true
		if info, err := os.Stat(path); err == nil {
			s.add(info)
		}
	}
	return any
}

// counts reports whether a file is of this user, and new.
func (s *found) counts(info fs.FileInfo) bool {
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(at.Uid) == os.Getuid() && !info.ModTime().Before(s.since) && !s.seen[at.Ino]
}

// add counts a file, unless it does not count.
func (s *found) add(info fs.FileInfo) (size snapshot.Bytes, ok bool) {
	if !s.counts(info) {
		return 0, false
	}
	at := info.Sys().(*syscall.Stat_t)
	s.seen[at.Ino] = true
	size = snapshot.Bytes(at.Blocks) * 512
	s.n++
	s.size += size
	return size, true
}

// mostSegments bounds a look at a folder.
const mostSegments = 10_000

// count counts those of processes, in the folder and by descriptor. If they are too many to look at, all that the file system
// has gained counts.
func (w *sharedFiles) count(tree []process) segments {
	in := make(map[int]bool, len(tree))
	for _, p := range tree {
		in[p.pid] = true
	}
	s := &found{since: w.since, seen: make(map[uint64]bool)}
	s.in = make(map[string]snapshot.Bytes)
	known := s.named(w.dir, func(pid int) bool { return in[pid] }, &w.others)
	before := w.without
	w.without = make(map[processID]used)
	for _, p := range tree[:min(len(tree), mostProcesses)] {
		if last, ok := before[p.processID]; ok && last == p.used || !s.open(p.pid) {
			w.without[p.processID] = p.used
		}
	}
	if !known && s.n == 0 {
		return segments{n: -1, size: snapshot.Unknown}
	}
	if s.cut {
		now := inUse(w.dir)
		s.n, s.size = max(s.n, now.n-w.before.n), max(s.size, now.size-w.before.size)
	}
	return s.segments
}

// outsiders knows which files of shared memory processes have that are not the command's: of another training of the same
// user, say. Whoever has a file at first has made it, or is handed it by who did.
type outsiders struct {
	has  map[uint64]bool // by inode
	rest time.Time       // until then nobody is asked, or it would cost too much
}

// without returns the files that no outsider has mapped. Those that nobody has looked at yet come with a later call.
func (o *outsiders) without(files []file, ours func(pid int) bool) (out []file) {
	inode := func(f file) uint64 { return f.Sys().(*syscall.Stat_t).Ino }
	begun := processorTime()
	if time.Now().After(o.rest) && slices.ContainsFunc(files, func(f file) bool { _, known := o.has[inode(f)]; return !known }) {
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
