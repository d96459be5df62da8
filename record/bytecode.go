package record

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Python compiles the agent at its first import, which takes longer than all else that the agent does at a program's start. The
// compiled files are stored beside the package in the user's cache, for the next run.
const bytecode = "memdiag/__pycache__"

// sourceTime is the modification time of each source file of the agent. Python recompiles a file if its time or size has changed.
var sourceTime = time.Unix(1_000_000_000, 0)

// copyAgent writes source files of the agent below dir.
func copyAgent(dir string, files fs.FS) error {
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	return fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(filepath.Join(dir, path), sourceTime, sourceTime)
	})
}

// giveBytecode copies cached bytecode into an unpacked agent and returns the cache's folder. It returns "" if there is no cache; Python
// then compiles the agent.
func giveBytecode(agent string) string {
	cache, err := os.UserCacheDir()
	if agent == "" || err != nil || !ownedByUs(cache) {
		return ""
	}
	folder, err := Package(filepath.Join(cache, "memdiag"))
	if err != nil {
		return ""
	}
	folder = filepath.Join(folder, bytecode)
	copyBytecode(filepath.Join(agent, bytecode), folder)
	return folder
}

// keepBytecode stores in the cache what Python has compiled of an unpacked agent.
func keepBytecode(agent, cached string) {
	if cached != "" {
		copyBytecode(cached, filepath.Join(agent, bytecode))
	}
}

// copyBytecode copies the .pyc files that are missing or different in the folder to. Python recompiles a file that cannot be copied.
func copyBytecode(to, from string) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil || os.MkdirAll(to, 0o755) != nil { //nolint:gosec // it is code that others may read
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".pyc") {
			continue
		}
		path := filepath.Join(to, e.Name())
		code, err := root.ReadFile(e.Name())
		if there, failed := os.ReadFile(path); err != nil || failed == nil && bytes.Equal(there, code) {
			continue
		}
		_ = replaceFile(path, code) // on failure Python compiles it again
	}
}

// replaceFile writes a temporary file and renames it, since others may read or write the file at the same time.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "*"+partSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// ownedByUs reports whether a folder, or its nearest parent that exists, belongs to this user. Root with another user's home would
// leave files that the user cannot change, and run what the user put there.
func ownedByUs(folder string) bool {
	info, err := os.Stat(folder)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(folder) != folder {
		folder = filepath.Dir(folder)
		info, err = os.Stat(folder)
	}
	return err == nil && ours(info)
}
