package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// file is one file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarball packs files below a folder, all of one time.
func tarball(folder string, files []file, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return buffer.Bytes(), err
}

// archive packs the binary with what a package of an operating system has: licences, the list of its
// parts, completion and manual pages.
func (b *binary) archive(pages []file) (name string, content []byte, err error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return "", nil, err
	}
	_, parts, err := b.sbom()
	if err != nil {
		return "", nil, err
	}
	files := []file{{"memdiag", 0o755, program}, {"sbom.cdx.json", 0o644, parts}}
	for _, path := range []string{"LICENSE", "cmd/memdiag/NOTICE", "README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		files = append(files, file{filepath.Base(path), 0o644, text})
	}
	content, err = tarball(b.releaseName(), append(files, pages...), b.time)
	return b.releaseName() + ".tar.gz", content, err
}

// releaseName is how the names of a binary's files begin: memdiag-1.2.3-linux-amd64.
func (b *binary) releaseName() string {
	return "memdiag-" + strings.Trim(strings.TrimPrefix(b.version, "v"), "()") + "-" + b.name
}

// completions are the names of the files in which shells look for what completes memdiag.
var completions = map[string]string{"bash": "memdiag.bash", "zsh": "_memdiag", "fish": "memdiag.fish", "powershell": "memdiag.ps1"}

// pages are the manual and the completion, by name, as one of the binaries that runs here writes them
// into a folder. They are the same on all platforms.
func pages(binaries []*binary, dir string) (list []file, err error) {
	runs := slices.IndexFunc(binaries, func(b *binary) bool { return b.goos == runtime.GOOS && b.goarch == runtime.GOARCH })
	if runs < 0 {
		return nil, fmt.Errorf("a memdiag for %s-%s writes them: add that target", runtime.GOOS, runtime.GOARCH)
	}
	program := binaries[runs].path
	if err := exec.Command(program, "man", "-q", "-o", filepath.Join(dir, "man", "man1")).Run(); err != nil {
		return nil, err
	}
	for shell, name := range completions {
		text, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(dir, "completion"), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "completion", name), text, 0o600); err != nil {
			return nil, err
		}
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		list = append(list, file{path, 0o644, text})
		return err
	})
	return list, err
}
