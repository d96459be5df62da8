package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// keptName is a folder in the run's folder. It holds the run that is being replaced until the new run has ended. If memdiag is killed
// meanwhile, the old run, or the rest of it, is there.
const keptName = ".memdiag-old"

// Kept is the path of that folder, and whether it is there.
func Kept(dir string) (path string, there bool) {
	path = filepath.Join(dir, keptName)
	_, err := os.Lstat(path)
	return path, err == nil
}

// UnfinishedError is a run that is not to be replaced, since it may be being recorded.
type UnfinishedError struct {
	Dir string
}

func (e *UnfinishedError) Error() string {
	return e.Dir + ": the run has not finished, or was killed; it is not replaced"
}

// Hint is the way out.
func (e *UnfinishedError) Hint() string {
	if kept, there := Kept(e.Dir); there {
		return "the finished run before it is kept in " + kept + ": if nobody records into the folder any more, move that away, and delete the folder"
	}
	return "if nobody records into it any more, delete the folder"
}

// RefusedError is a file that prevents the replacement of a run.
type RefusedError struct {
	Path   string
	Reason string
}

func (e *RefusedError) Error() string { return e.Path + ": " + e.Reason + "; the run is not replaced" }

// Hint is the way out.
func (e *RefusedError) Hint() string {
	return "move the file away, or choose another folder with -o"
}

// Replace is Create in the place of a finished run. Files with the names and the content of recordings are moved away, and all others
// in the folder stay. Finish deletes what was moved, and PutBack restores it. What an earlier, killed Replace left is first restored or
// deleted.
//
// The error for a folder without a run is a *NotEmptyError, and for a run that has not finished an *UnfinishedError. It is a
// *RefusedError if a file has a recording's name but is none, or if a word of a command names it. The folder then stays as it was. The
// run has no rank, since ranks that begin together would move each other's files.
func Replace(dir string, info snapshot.Info, words ...string) (*Writer, error) {
	if err := settle(dir); err != nil {
		return nil, err
	}
	names, err := replaceable(dir)
	if err != nil {
		return nil, err
	}
	if err := unnamed(dir, names, words); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return begin(dir, info, true)
	}
	kept := filepath.Join(dir, keptName)
	if err := os.Mkdir(kept, folderPerm); err != nil {
		return nil, cannotWrite(kept, err)
	}
	var w *Writer
	if err = move(dir, kept, infoLast(names)); err == nil {
		w, err = begin(dir, info, true)
	}
	if err != nil {
		_ = settle(dir) // the first error counts, and what could not be put back is in kept
		return nil, err
	}
	w.kept = kept
	return w, nil
}

// PutBack is called instead of Finish if a recording failed. It restores the run that was to be replaced, deletes what this one has
// written, and reports whether it did. If there is no such run, or this one has a snapshot, nothing changes.
func (w *Writer) PutBack() (bool, error) {
	if w.kept == "" {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	names, err := recordedIn(w.dir)
	if err != nil || slices.ContainsFunc(names, IsRecordedSnapshot) {
		return false, err
	}
	for _, f := range w.series {
		_ = f.Close() // it will be deleted
	}
	if err := removeAll(w.dir, infoLast(names)); err != nil {
		return false, err
	}
	if err := settle(w.dir); err != nil {
		return false, err
	}
	w.kept = ""
	return true, nil
}

// settle completes what a killed process has begun. If the old run was not moved away completely, or nothing has replaced it, it is
// restored. If the run in its place has finished, the old one is deleted. InfoName distinguishes these cases: it is the last file to be
// moved and to be deleted, and the first to be restored.
func settle(dir string) error {
	kept, there := Kept(dir)
	if !there {
		return nil
	}
	if at, err := os.Lstat(kept); err != nil || !at.IsDir() {
		return &RefusedError{kept, "not a folder of memdiag's"}
	}
	names, err := recordedIn(kept)
	if err != nil {
		return err
	}
	if slices.Contains(names, InfoName) {
		path := filepath.Join(dir, InfoName)
		if _, err := os.Lstat(path); err == nil {
			if info, err := readInfo(path); err == nil && info.Finished != nil {
				return removeKept(dir)
			}
			return nil // of a run that has not finished; it is refused
		}
	}
	if err := move(kept, dir, infoFirst(names)); err != nil {
		return err
	}
	if err := os.Remove(kept); err != nil {
		return cannotWrite(kept, err)
	}
	return nil
}

// removeKept deletes the kept run.
func removeKept(dir string) error {
	kept := filepath.Join(dir, keptName)
	names, err := recordedIn(kept)
	if err == nil {
		err = removeAll(kept, infoLast(names))
	}
	if err != nil {
		return err
	}
	if err := os.Remove(kept); err != nil {
		return cannotWrite(kept, err)
	}
	return nil
}

// replaceable lists the files of the finished run in a folder; none if it is empty or does not exist.
func replaceable(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0:
		return nil, nil
	case err != nil:
		return nil, cannotWrite(dir, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, InfoName)); err != nil {
		return nil, &NotEmptyError{Dir: dir}
	}
	if names, err = recordedIn(dir); err != nil {
		return nil, err
	}
	for _, name := range names {
		if !isInfoName(name) {
			continue
		}
		info, err := readInfo(filepath.Join(dir, name))
		if err != nil {
			return nil, &RefusedError{filepath.Join(dir, name), "not what memdiag writes of a run (" + err.Error() + ")"}
		}
		if info.Finished == nil {
			return nil, &UnfinishedError{Dir: dir}
		}
	}
	for _, name := range names {
		if err := checkContent(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// recordedIn lists what in a folder has a name that recordings give; that is regular files.
func recordedIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cannotWrite(dir, err)
	}
	for _, e := range entries {
		if !isRecorded(e.Name()) && !IsTemporary(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			return nil, &RefusedError{filepath.Join(dir, e.Name()), "named as in a recording, and no regular file"}
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// unnamed returns an error if a word of the command names one of the files, or contains its path.
func unnamed(dir string, names, words []string) error {
	var paths []string
	var files []os.FileInfo
	for _, name := range names {
		path := filepath.Join(dir, name)
		if at, err := os.Stat(path); err == nil {
			paths, files = append(paths, path), append(files, at)
		}
	}
	for _, word := range words {
		parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`=,;:<>|&(){}[]", r) })
		for _, part := range append(parts, word) {
			at, err := os.Stat(part)
			if err != nil {
				continue
			}
			for i := range files {
				if os.SameFile(at, files[i]) {
					return &RefusedError{paths[i], "the command names this file, which --force would delete"}
				}
			}
		}
	}
	return nil
}

// move moves files into another folder. It overwrites no existing file.
func move(from, to string, names []string) error {
	for _, name := range names {
		target := filepath.Join(to, name)
		if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
			return &RefusedError{target, "in the way of the file of that name in " + from}
		}
		if err := os.Rename(filepath.Join(from, name), target); err != nil {
			return cannotWrite(target, err)
		}
	}
	for _, dir := range []string{to, from} {
		if err := syncDir(dir); err != nil {
			return cannotWrite(dir, err)
		}
	}
	return nil
}

// removeAll deletes files, or none if one is not what recordings write: a program may have put it there while it was recorded.
func removeAll(dir string, names []string) error {
	for _, name := range names {
		if err := checkContent(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return cannotWrite(path, err)
		}
	}
	return nil
}

func infoFirst(names []string) []string {
	first := slices.Clone(names)
	slices.SortStableFunc(first, func(a, b string) int { return order(a) - order(b) })
	return first
}

func infoLast(names []string) []string {
	last := infoFirst(names)
	slices.Reverse(last)
	return last
}

func order(name string) int {
	if name == InfoName {
		return 0
	}
	return 1
}
