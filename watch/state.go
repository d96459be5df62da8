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

// A glance at a folder stats each file in it: a million on a local disk take four seconds. Glances take one part in glanceShare of the time,
// but one comes each mostUnseen at least, as on a network file system that was slow once.
const (
	glanceShare = 50
	mostUnseen  = 4 * time.Minute
)

// untilGlance is how long to wait where a glance takes so long: of the last two the shorter one, since a disk may stand still once.
func (f *Follower) untilGlance(took time.Duration) time.Duration {
	return max(f.Every, min(glanceShare*took, mostUnseen))
}

// state is what a folder's names, sizes and times tell.
type state struct {
	snapshots uint64 // a hash of the names, sizes and times of these, and of all that is no table
	tables    int64  // bytes of the tables of processes and counters, which grow
	infos     int64  // bytes of the files that say how the run began and ended
	changed   time.Time
}

// mostFiles are as many as a run may have.
const mostFiles = 1 << 20

// stateOf reads no file. Hidden ones are being written, and others may go meanwhile.
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

// entryAt is a file as its folder lists it.
type entryAt struct {
	path string
	fs.DirEntry
}

// atOnce is of how many files the sizes are asked at once: a network file system asks a server for each.
const atOnce = 16

// infosOf are the sizes and times of files; nil of one that is gone.
func infosOf(entries []entryAt) []fs.FileInfo {
	infos := make([]fs.FileInfo, len(entries))
	var group sync.WaitGroup
	for from := range min(atOnce, len(entries)) {
		group.Go(func() {
			for i := from; i < len(entries); i += atOnce {
				infos[i], _ = entries[i].Info() // one that is gone has none
			}
		})
	}
	group.Wait()
	return infos
}

// skip passes a file over, or a folder with all that is in it.
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
