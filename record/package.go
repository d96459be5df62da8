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
		panic(err) // the name is no path, which it is
	}
	return files
}

// Package unpacks memdiag's Python package, with mark and the plugin for pytest, below
// dir, which it makes, and returns the folder for PYTHONPATH. The folder is named by
// what is in it; one that is there is used if it holds just that, and recreated if not.
// Folders of other versions that nobody uses any more are removed.
func Package(dir string) (string, error) {
	files := PythonPackage()
	sum := xxhash.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text) // a hash takes all
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
	defer shareUse(folder)() // nobody removes it before it is known to be used
	if info, err := os.Lstat(folder); err == nil && !ofOthers(info) && sameFiles(filepath.Join(folder, "memdiag"), files) {
		now := time.Now()
		_ = os.Chtimes(folder, now, now) // where it may not be written, it is not pruned either
		return folder, nil
	}
	whole, err := os.MkdirTemp(dir, unpackingPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(whole) }() // which is gone where all went well
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
		// Part of it was lost, or somebody else put it there; what Python compiled in it goes too.
		replaced, err := os.MkdirTemp(dir, replacedPrefix)
		if err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(replaced) }() // of it nothing is needed
		if err := os.Rename(folder, filepath.Join(replaced, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s differs from memdiag's own file, and cannot be replaced: %w", folder, err)
		}
	}
	if err := os.Rename(whole, folder); err != nil && !sameFiles(filepath.Join(folder, "memdiag"), files) { // else another process was first
		return "", err
	}
	return folder, nil
}

// sameFiles reports whether a folder, and no link to one, holds these files as they are and,
// beyond what Python compiles, no others.
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
