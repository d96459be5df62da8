package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// PythonPackage is the content of memdiag's Python package, in one flat folder.
func PythonPackage() fs.FS {
	files, err := fs.Sub(agentFiles, "agent/memdiag")
	if err != nil {
		panic(err) // impossible: the name is a valid path
	}
	return files
}

// Package unpacks memdiag's Python package, with mark and the plugin for pytest, below dir, and returns the folder for PYTHONPATH. It
// creates dir if needed. The folder's name is a hash of its content. An existing folder is used if it has exactly this content, and
// replaced if not. Folders of other versions that are no longer used are removed.
func Package(dir string) (string, error) {
	files := PythonPackage()
	sum := xxhash.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text) // a hash never fails
		return err
	})
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, fmt.Sprintf("%s%016x", unpackedPrefix, sum.Sum64()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || ofOthers(info) {
		return "", cmp.Or(err, fmt.Errorf("%s: other users may write there, and could have Python run their code", dir))
	}
	defer prune(dir, folder, time.Now())
	defer shareUse(folder)() // so that nobody removes it before use is recorded
	if info, err := os.Lstat(folder); err == nil && !ofOthers(info) && sameFiles(filepath.Join(folder, "memdiag"), files) {
		now := time.Now()
		_ = os.Chtimes(folder, now, now) // if it cannot be written, it cannot be pruned either
		return folder, nil
	}
	whole, err := os.MkdirTemp(dir, unpackingPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(whole) }() // it no longer exists on success
	if err := copyAgent(filepath.Join(whole, "memdiag"), files); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(whole, useName), nil, 0o644); err != nil { //nolint:gosec // others may read the code, too
		return "", err
	}
	if err := os.Chmod(whole, 0o755); err != nil { //nolint:gosec // it is code that others may read
		return "", err
	}
	if _, err := os.Lstat(folder); err == nil {
		// A file in it was lost, or somebody else created it. What Python compiled in it is removed, too.
		replaced, err := os.MkdirTemp(dir, replacedPrefix)
		if err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(replaced) }() // nothing of it is needed
		if err := os.Rename(folder, filepath.Join(replaced, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s differs from memdiag's own file, and cannot be replaced: %w", folder, err)
		}
	}
	if err := os.Rename(whole, folder); err != nil && !sameFiles(filepath.Join(folder, "memdiag"), files) { // otherwise another process was first
		return "", err
	}
	return folder, nil
}

// sameFiles reports whether dir is a real folder, not a link, that contains exactly these files. Python's __pycache__ is allowed.
func sameFiles(dir string, files fs.FS) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	there, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return false
	}
	want, err := fs.ReadDir(files, ".")
	if err != nil {
		return false
	}
	there = slices.DeleteFunc(there, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == "__pycache__" })
	return slices.EqualFunc(there, want, func(a, b fs.DirEntry) bool {
		if a.Name() != b.Name() || !a.Type().IsRegular() {
			return false
		}
		is, err1 := root.ReadFile(a.Name())
		ought, err2 := fs.ReadFile(files, b.Name())
		return err1 == nil && err2 == nil && bytes.Equal(is, ought)
	})
}
