package watch

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot/rundir"
)

// A check of a folder stats each file in it: a million files on a local disk take four seconds. Checks take one part in glanceShare of
// the time, but there is one at least every mostUnseen, since a network file system may have been slow only once.
const (
	glanceShare = 50
	mostUnseen  = 4 * time.Minute
)

// untilGlance is the time until the next check. took should be the shorter of the last two durations, since a disk may stall once.
func (f *Follower) untilGlance(took time.Duration) time.Duration {
	return max(f.Every, min(glanceShare*took, mostUnseen))
}

// state is what the names, sizes and times of a folder's files show.
type state struct {
	snapshots uint64 // a hash of the names, sizes and times of snapshots, and of all files that are no tables
	tables    int64  // total size of the tables of processes and counters, which grow
	infos     int64  // total size of the files that say how the run began and ended
	changed   time.Time
}

// mostFiles is the most files that a run may have.
const mostFiles = 1 << 20

// stateOf reads no file contents. Hidden files are being written, and other files may be removed meanwhile.
func stateOf(dir string) (state, error) {
	var s state
	hash, files := xxhash.New(), 0
	waiting := make([]entryAt, 0, atOnce*atOnce)
	flush := func() {
		for i, info := range infosOf(waiting) {
			if info != nil {
				s.add(waiting[i].path, info, hash)
			}
		}
		waiting = waiting[:0]
	}
	root, err := filepath.EvalSymlinks(dir) // WalkDir does not go into a link, such as latest
	if err != nil {
		return s, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == root:
			return err
		case err != nil || strings.HasPrefix(entry.Name(), "."):
			return skip(entry)
		case entry.IsDir():
			return nil
		case files == mostFiles:
			return fs.SkipAll
		}
		files++
		if waiting = append(waiting, entryAt{path, entry}); len(waiting) == cap(waiting) {
			flush()
		}
		return nil
	})
	flush()
	s.snapshots = hash.Sum64()
	return s, err
}

// entryAt is a file in the listing of its folder.
type entryAt struct {
	path string
	fs.DirEntry
}

// atOnce is how many files are stat'ed concurrently: a network file system asks a server for each.
const atOnce = 16

// infosOf are the sizes and times of files; nil for a file that no longer exists.
func infosOf(entries []entryAt) []fs.FileInfo {
	infos := make([]fs.FileInfo, len(entries))
	var group sync.WaitGroup
	for from := range min(atOnce, len(entries)) {
		group.Go(func() {
			for i := from; i < len(entries); i += atOnce {
				infos[i], _ = entries[i].Info() // nil if it no longer exists
			}
		})
	}
	group.Wait()
	return infos
}

// skip skips a file, or a folder with everything in it.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (s *state) add(path string, info fs.FileInfo, hash io.Writer) {
	if info.ModTime().After(s.changed) {
		s.changed = info.ModTime()
	}
	if strings.HasSuffix(path, ".csv") || rundir.IsSeriesName(info.Name()) {
		s.tables += info.Size()
		return
	}
	if strings.HasSuffix(info.Name(), ".json") {
		s.infos += info.Size()
	}
	_, _ = fmt.Fprintf(hash, "%s\x00%d %d\x00", path, info.Size(), info.ModTime().UnixNano()) // a hash takes all
}
