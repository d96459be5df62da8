// Package source finds causes of leaks in Python source, by Python's own ast: nothing of the source runs.
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
	// MaxFiles are read at most.
	MaxFiles = 64
	maxReply = 64 << 20
	patience = 30 * time.Second
)

// Python is an interpreter that reads source.
type Python string

// Frame is where the program was.
type Frame struct {
	File     string `json:"file"`
	Function string `json:"function"`
	Line     int    `json:"line"`
}

// Leak is what a patch is to mend.
type Leak struct {
	ID     int      `json:"id"`
	Path   string   `json:"path"` // of the holder
	Kind   string   `json:"kind"` // of the holder
	Cause  string   `json:"cause"`
	Trial  string   `json:"trial"`  // the change that proved it; "" for none
	Proven bool     `json:"proven"` // the program computes the same without what the trial took away
	Needed bool     `json:"needed"` // it does not
	Kept   int64    `json:"kept"`   // items that the trial left
	Frames []Frame  `json:"frames"` // of its stack
	Files  []string `json:"files"`  // in which it is sought, the likeliest first
}

// File is a file of Python's.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Patched are files with what was changed.
type Patched struct {
	Files   []File
	Done    map[int]string // by a leak's ID, what the patch does, a clause
	Refused map[int]string // why there is none
}

// Suspect is a place that looks like a cause.
type Suspect struct {
	Line  int    `json:"line"`
	End   int    `json:"end"`
	First int    `json:"first"` // lines of its function, or of the file
	Last  int    `json:"last"`
	Cause string `json:"cause"`
	Says  string `json:"says"`
	Name  string `json:"name"` // of what grows, if anything has one
}

// Linted are the suspects of a file.
type Linted struct {
	Name   string    `json:"name"`
	Found  []Suspect `json:"found"`
	Failed string    `json:"failed"` // why it could not be read
}

// ReadPython reads a file that a run names. A run may name any: what is no .py file is not read, whatever a link to it is
// called.
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

// Read reads a file, if it is one of text that is not too large.
func Read(name string) (*File, error) {
	none := fmt.Errorf("%s: no file of at most %d MiB", name, MaxFile>>20)
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, none // to open a pipe waits for its writer
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

// Patch changes files so that leaks go.
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

// Lint finds what looks like a cause in files.
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

// ask runs the interpreter apart from the user's settings and packages.
func (p Python) ask(ctx context.Context, about map[string]any, reply any) error {
	request, err := json.Marshal(about)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	script := "import ast, re\n" + strings.Join([]string{tree, patch, lint, answer}, "\n")
	cmd := exec.CommandContext(ctx, string(p), "-I", "-S", "-c", script) //nolint:gosec // it is the Python that the user runs
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

// limited takes no more than so many bytes.
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
