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

// torchSegment matches a shared memory file of PyTorch, whose name has the PID of the process that made it.
var torchSegment = regexp.MustCompile(`^torch_([0-9]+)_`)

// sharedFiles counts the files in a folder of shared memory.
type sharedFiles struct {
	dir     string
	since   time.Time          // when the command began
	before  segments           // the use of the whole file system at that time
	without map[processID]used // processes that had no shared file open at the last look
	others  outsiders
}

func watchShared(dir string, since time.Time) sharedFiles {
	return sharedFiles{dir: dir, since: since, before: inUse(dir)}
}

// inUse is the use of a whole file system, by all users. n is 0 if it does not count its files.
func inUse(dir string) (all segments) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		all.n, all.size = int64(fs.Files-fs.Ffree), snapshot.Bytes(fs.Blocks-fs.Bfree)*snapshot.Bytes(fs.Bsize)
	}
	return all
}

// found counts files that were created since a time, each once.
type found struct {
	segments
	since time.Time
	seen  map[uint64]bool // inodes
	cut   bool            // whether there were too many files to look at
}

// file is a file with its folder.
type file struct {
	fs.FileInfo
	dir string
}

// named adds this user's files in a folder and below. It leaves out PyTorch's files named for a live process that is not ours, and
// files that outsiders have. It reports whether the folder can be read.
func (s *found) named(dir string, ours func(pid int) bool, others *outsiders) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	_ = f.Close()
	var news []file
	looked := 0
	// The slash makes WalkDir follow a folder that is a link, as /dev/shm may be.
	_ = filepath.WalkDir(dir+"/", func(path string, e fs.DirEntry, err error) error { // no error of ours
		if looked++; looked > mostSegments {
			s.cut = true
			return fs.SkipAll
		}
		// Another user's folder gives an error, and has none of our files.
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

// othersTensors reports whether a file is PyTorch's and named for a live process that is not ours.
func othersTensors(file string, ours func(pid int) bool) bool {
	m := torchSegment.FindStringSubmatch(file)
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	_, lives := readStat(pid)
	return err != nil || lives && !ours(pid)
}

// open adds shared memory files that a process has open and that have no name, or no longer have one: PyTorch's default way to pass
// tensors. It reports whether the process has any shared memory file open, counted or not.
func (s *found) open(pid int) (any bool) {
	dir := procFile(pid, "fd")
	f, err := os.Open(dir)
	if err != nil {
		return false // it has ended, or is another user's
	}
	names, _ := f.Readdirnames(mostSegments) // what was read before an error is used
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

// counts reports whether a file belongs to this user, is new, and was not counted yet.
func (s *found) counts(info fs.FileInfo) bool {
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(at.Uid) == os.Getuid() && !info.ModTime().Before(s.since) && !s.seen[at.Ino]
}

// add counts a file, unless it is not to be counted.
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

// mostSegments bounds how many files one look checks in a folder.
const mostSegments = 10_000

// count counts the files of processes, in the folder and by descriptor. If there are too many to check, the growth of the whole file
// system is the count.
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

// outsiders knows which shared memory files belong to processes outside the command, such as another training of the same user. The
// processes that have a file when it is first seen decide: one of them made it, or received it from the one that did.
type outsiders struct {
	has  map[uint64]bool // whether an outsider had the file, by inode
	rest time.Time       // nothing is read before this time, to limit the cost
}

// without returns the files that no outsider has mapped. A file that has not been checked yet is returned by a later call.
func (o *outsiders) without(files []file, ours func(pid int) bool) (out []file) {
	inode := func(f file) uint64 { return f.Sys().(*syscall.Stat_t).Ino }
	begun := processorTime()
	if time.Now().After(o.rest) && slices.ContainsFunc(files, func(f file) bool { _, known := o.has[inode(f)]; return !known }) {
		mapped := make(map[uint64]bool)
		entries, _ := os.ReadDir("/proc") // what was read before an error is used
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && !ours(pid) {
				sharedOf(pid, mapped)
			}
		}
		before := o.has
		o.has = make(map[uint64]bool, len(files)) // files that no longer exist are forgotten
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

// sharedOf adds the shared memory files that a process has mapped. The kernel takes long to list mappings, and few processes have
// shared memory, so the status is read first.
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
