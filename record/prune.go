package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// unpackedPrefix begins the names of folders with a version of the Python package.
	unpackedPrefix = "python-"
	// unpackingPrefix and replacedPrefix begin the names of folders that a working process creates. A folder that still has one after a
	// day was left by a process that was killed.
	unpackingPrefix, replacedPrefix = "unpacking-", "replaced-"
	// useName is a lock file beside the package. Each process that has imported the package holds its shared lock; __init__.py takes
	// it.
	useName = "in-use"
	// keptVersions of the package are kept, for shells that have the folder of one in PYTHONPATH.
	keptVersions = 8
	// unusedFor is how long a folder must be unused before it is removed.
	unusedFor = 24 * time.Hour
	// unlockedFor is the same for a folder without a lock file, which old versions made: their processes may run for long.
	unlockedFor = 30 * 24 * time.Hour
)

// unpackedName is the name of a folder with a version of the package.
var unpackedName = regexp.MustCompile("^" + unpackedPrefix + "[0-9a-f]{16}$")

// prune removes versions of the package below dir that no process has begun to use for a day, or for 30 days if they have no lock file.
// It keeps versions that a process still uses, the eight that were used last, and the folder kept. It also removes what killed
// processes left. Errors are ignored.
func prune(dir, kept string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type version struct {
		path string
		used time.Time
	}
	var versions []version
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || path == kept {
			continue
		}
		switch {
		case strings.HasPrefix(e.Name(), unpackingPrefix), strings.HasPrefix(e.Name(), replacedPrefix):
			if now.Sub(info.ModTime()) > unusedFor {
				_ = os.RemoveAll(path)
			}
		case unpackedName.MatchString(e.Name()):
			versions = append(versions, version{path, info.ModTime()})
		}
	}
	slices.SortFunc(versions, func(a, b version) int { return b.used.Compare(a.used) })
	for _, v := range versions[min(len(versions), keptVersions-1):] { // the folder kept is one of them
		if now.Sub(v.used) > unusedFor {
			removeUnused(dir, v.path, now)
		}
	}
}

// removeUnused removes a version of the package unless a process uses it. A Python process that begins to use it now does not wait for
// the lock, but sets the folder's time first. Package waits, and unpacks the folder again.
func removeUnused(dir, path string, now time.Time) {
	wait := unusedFor
	use, err := os.OpenFile(filepath.Join(path, useName), os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wait = unlockedFor
	case err != nil:
		return
	default:
		defer func() { _ = use.Close() }() // nothing was written
		if err := lock(use); err != nil {
			return
		}
	}
	// Checked under the lock, so that a new time is seen.
	if info, err := os.Lstat(path); err != nil || now.Sub(info.ModTime()) <= wait {
		return
	}
	gone, err := os.MkdirTemp(dir, replacedPrefix)
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(gone) }() // on failure the next prune removes it
	_ = os.Rename(path, filepath.Join(gone, "old"))
}

// shareUse prevents the removal of a version of the package until the returned function is called.
func shareUse(folder string) (done func()) {
	use, err := os.Open(filepath.Join(folder, useName))
	if err != nil {
		return func() {}
	}
	_ = lockShared(use) // without locks nothing is removed
	return func() { _ = use.Close() }
}
