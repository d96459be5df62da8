package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// Package unpacks memdiag's Python package, with mark and the plugin for pytest, below
// dir, which it makes, and returns the folder for PYTHONPATH. The folder is named by
// what is in it; one that is there is used as it is.
func Package(dir string) (string, error) {
	files, err := fs.Sub(agentFiles, "agent/memdiag")
	if err != nil {
		return "", err
	}
	sum := xxhash.New()
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
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
	folder := filepath.Join(dir, fmt.Sprintf("python-%016x", sum.Sum64()))
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	whole, err := os.MkdirTemp(dir, "unpacking-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(whole) }() // which is gone where all went well
	if err := os.CopyFS(filepath.Join(whole, "memdiag"), files); err != nil {
		return "", err
	}
	if err := os.Chmod(whole, 0o755); err != nil { //nolint:gosec // it is code that others may read
		return "", err
	}
	if err := os.Rename(whole, folder); err != nil {
		if _, there := os.Stat(folder); there == nil {
			return folder, nil // another process was first
		}
		return "", err
	}
	return folder, nil
}
