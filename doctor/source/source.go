// Package source finds causes of leaks in Python source with Python's ast module: the source is not run.
package source

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

//go:embed tree.py
var tree string

//go:embed patch.py
var patch string

//go:embed lint.py
var lint string

//go:embed main.py
var answer string

const (
	// MaxFile is the largest file that is read.
	MaxFile = 2 << 20
	// MaxFiles is how many files are read at most.
	MaxFiles = 64
	maxReply = 64 << 20
	patience = 30 * time.Second
)

// Python is the path of an interpreter that reads source.
type Python string

// Frame is a frame of a stack.
type Frame struct {
	File     string `json:"file"`
	Function string `json:"function"`
	Line     int    `json:"line"`
}

// Leak is a leak that a patch should fix.
type Leak struct {
	ID     int      `json:"id"`
	Path   string   `json:"path"` // path of the holder
	Kind   string   `json:"kind"` // kind of the holder
	Cause  string   `json:"cause"`
	Trial  string   `json:"trial"`  // the trial that proved it; "" for none
	Proven bool     `json:"proven"` // the program computes the same without what the trial removed
	Needed bool     `json:"needed"` // the program computes something else without it
	Kept   int64    `json:"kept"`   // items that the trial left
	Frames []Frame  `json:"frames"` // frames of its stack
	Files  []string `json:"files"`  // the files to search, the likeliest first
}

// File is a Python file.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Patched are the files that were changed, with what was changed.
type Patched struct {
	Files   []File
	Done    map[int]string // what the patch does, a clause, by the leak's ID
	Refused map[int]string // why there is no patch, by the leak's ID
}

// Suspect is a place that looks like a cause.
type Suspect struct {
	Line  int    `json:"line"`
	End   int    `json:"end"`
	First int    `json:"first"` // lines of its function, or of the file
	Last  int    `json:"last"`
	Cause string `json:"cause"`
	Says  string `json:"says"`
	Name  string `json:"name"` // name of what grows, if it has one
}

// Linted are the suspects of a file.
type Linted struct {
	Name   string    `json:"name"`
	Found  []Suspect `json:"found"`
	Failed string    `json:"failed"` // why it could not be read
}

// ReadPython reads a file that a run names. A run may name any file, so only .py files are read; for a link, the name of its target
// counts.
func ReadPython(name string) (*File, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(real) != ".py" {
		return nil, fmt.Errorf("%s: %s is no .py file", name, real)
	}
	return Read(name)
}

// Read reads a text file that is not too large.
func Read(name string) (*File, error) {
	none := fmt.Errorf("%s: no file of at most %d MiB", name, MaxFile>>20)
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, none // opening a pipe would wait for its writer
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFile {
		return nil, none
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxFile || !utf8.Valid(text) || bytes.ContainsRune(text, 0):
		return nil, fmt.Errorf("%s: not text in UTF-8 of at most %d MiB", name, MaxFile>>20)
	}
	return &File{Name: name, Text: string(text)}, nil
}

// Patch changes files so that leaks end.
func (p Python) Patch(ctx context.Context, files []File, leaks []Leak) (*Patched, error) {
	var reply struct {
		Files         []File
		Done, Refused []struct {
			ID        int
			Says, Why string
		}
		Failed string
	}
	if err := p.ask(ctx, map[string]any{"op": "patch", "files": files, "leaks": leaks}, &reply); err != nil {
		return nil, err
	}
	if reply.Failed != "" {
		return nil, errors.New(reply.Failed)
	}
	out := &Patched{Files: reply.Files, Done: make(map[int]string), Refused: make(map[int]string)}
	for _, d := range reply.Done {
		out.Done[d.ID] = d.Says
	}
	for _, r := range reply.Refused {
		out.Refused[r.ID] = r.Why
	}
	return out, nil
}

// Lint finds places in files that look like causes.
func (p Python) Lint(ctx context.Context, files []File) ([]Linted, error) {
	var reply struct {
		Files  []Linted
		Failed string
	}
	if err := p.ask(ctx, map[string]any{"op": "lint", "files": files}, &reply); err != nil {
		return nil, err
	}
	if reply.Failed != "" {
		return nil, errors.New(reply.Failed)
	}
	return reply.Files, nil
}

// ask runs the interpreter without the user's settings and packages.
func (p Python) ask(ctx context.Context, about map[string]any, reply any) error {
	request, err := json.Marshal(about)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	script := "import ast, re\n" + strings.Join([]string{tree, patch, lint, answer}, "\n")
	cmd := exec.CommandContext(ctx, string(p), "-I", "-S", "-c", script) //nolint:gosec // the Python that the user runs
	cmd.Stdin = bytes.NewReader(request)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&out, maxReply}, &limited{&said, 64 << 10}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: it did not answer in %s", p, patience)
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return fmt.Errorf("%s: %w: %s", p, err, lines[len(lines)-1])
	}
	return json.Unmarshal(out.Bytes(), reply)
}

// limited accepts at most left bytes.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errors.New("too much")
	}
	l.left -= len(p)
	return l.to.Write(p)
}
