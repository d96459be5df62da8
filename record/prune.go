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
	// unpackingPrefix and replacedPrefix begin the names of folders that a process at work makes. What has one after a day was left
	// by a process that was killed.
	unpackingPrefix, replacedPrefix = "unpacking-", "replaced-"
	// useName is a file whose lock each process shares that has imported the package beside it, as __init__.py does.
	useName = "in-use"
	// keptVersions of the package remain for shells that have one's folder in PYTHONPATH.
	keptVersions = 8
	// unusedFor is how long no process may have begun to use a folder that is removed.
	unusedFor = 24 * time.Hour
	// unlockedFor is the same for a folder without a lock, from before there were any: its processes may run for long.
	unlockedFor = 30 * 24 * time.Hour
)

// unpackedName is the name of a folder with a version of the package.
var unpackedName = regexp.MustCompile("^" + unpackedPrefix + "[0-9a-f]{16}$")

// prune removes the versions of the package below dir that nobody has begun to use for a day, or for 30 where they have no lock, but
// for those that a process still uses, the eight that were used last, and the folder kept. It removes what killed processes left,
// too. What cannot be removed stays.
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
	for _, v := range versions[min(len(versions), keptVersions-1):] { // kept is one more
		if now.Sub(v.used) > unusedFor {
			removeUnused(dir, v.path, now)
		}
	}
}

// removeUnused removes a version of the package unless a process uses it. A Python process that begins to use it meanwhile
// does not wait for the lock, but gives the folder a new time before. Package waits, and then unpacks it again.
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
	// With the lock, so that a new time is seen.
	if info, err := os.Lstat(path); err != nil || now.Sub(info.ModTime()) <= wait {
		return
	}
	gone, err := os.MkdirTemp(dir, replacedPrefix)
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(gone) }() // else the next time
	_ = os.Rename(path, filepath.Join(gone, "old"))
}

// shareUse keeps a version of the package from being removed until the function that it returns is called.
func shareUse(folder string) (done func()) {
	use, err := os.Open(filepath.Join(folder, useName))
	if err != nil {
		return func() {}
	}
	_ = lockShared(use) // without locks, nothing is removed
	return func() { _ = use.Close() }
}
