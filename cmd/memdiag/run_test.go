package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
	"github.com/spf13/cobra"
)

// newTestEnvironment is an environment of buffers, with a clock that stands.
func newTestEnvironment() (env *environment, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	start := time.Unix(1000, 0)
	now := func() time.Time { return start }
	env = &environment{
		stdout: &sink{w: stdout},
		talk:   &talker{w: stderr, now: now, progressed: start},
		getenv: func(string) string { return "" },
		now:    now,
		child:  streams{strings.NewReader(""), stdout, stderr},
	}
	return env, stdout, stderr
}

func TestErrorsBecomeCodesAndLines(t *testing.T) {
	format := &snapshot.FormatError{File: "s_0", Offset: 7, Reason: "not a snapshot", Hint: "memdiag reads pickles"}
	_, missing := os.Open("no-such-file")
	for _, c := range []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{"nothing wrong says nothing", nil, 0, ""},
		{"a leak is said by the gate, not as an error", &exitError{code: exitLeak}, 1, ""},
		{"a child's code passes", fmt.Errorf("record: %w", &exitError{code: 77}), 77, ""},
		{"a format error is bad input with its hint", fmt.Errorf("run: %w", format), 3,
			"memdiag: run: s_0: byte 7: not a snapshot\nhint: memdiag reads pickles\n"},
		{"a missing file is bad input", missing, 3, "memdiag: open no-such-file: no such file or directory\n"},
		{"a file that may not be read is bad input", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, 3,
			"memdiag: open x: permission denied\n"},
		{"input that makes no sense is bad input", badInput(errors.New("two runs")), 3, "memdiag: two runs\n"},
		{"a missing folder for a result is no bad input", cannotWrite("a/b.png", missing), 5,
			"memdiag: a/b.png: no such file or directory\nhint: make the folder first, or choose another\n"},
		{"a folder that may not be written has a hint", cannotWrite("a/b.png", &fs.PathError{Op: "open", Path: "a/.x", Err: fs.ErrPermission}), 5,
			"memdiag: a/b.png: permission denied\nhint: choose a folder that you may write\n"},
		{"a full disk has a hint", cannotWrite("a/b.png", syscall.ENOSPC), 5,
			"memdiag: a/b.png: no space left on device\nhint: free some space, or choose a folder on another disk\n"},
		{"a run's folder that may not be written has a hint", &rundir.WriteError{Path: "run", Err: syscall.EROFS}, 5,
			"memdiag: run: read-only file system\nhint: choose a folder that you may write\n"},
		{"a run's folder that went away is no bad input", fmt.Errorf("x: %w", &rundir.WriteError{Path: "run/a", Err: fs.ErrNotExist}), 5,
			"memdiag: x: run/a: file does not exist\n"},
		{"anything else is ours", errors.New("out of luck"), 5, "memdiag: out of luck\n"},
		{"several errors stay on one line", errors.Join(errors.New("one"), errors.New("two")), 5, "memdiag: one; two\n"},
		{"the outermost hint wins", withHint(fmt.Errorf("x: %w", format), "try %d", 2), 3,
			"memdiag: x: s_0: byte 7: not a snapshot\nhint: try 2\n"},
		{"names cannot drive the terminal", errors.New("\x1b[2Jé\t"), 5, "memdiag: \\x1b[2Jé\\t\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, stdout, stderr := newTestEnvironment()
			env.talk.quiet = true
			if code := env.conclude(t.Context(), c.err); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if stderr.String() != c.stderr {
				t.Errorf("stderr %q, want %q", stderr, c.stderr)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout %q", stdout)
			}
		})
	}
}

func TestWhatACommandReturnsIsToldFromUsage(t *testing.T) {
	failed := errors.New("out of luck")
	ran := false
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, Args: takes(1, 1, "run"),
		RunE: func(*cobra.Command, []string) error { return failed }}
	prepare(cmd, func() { ran = true })

	cmd.SetArgs([]string{"run"})
	err := cmd.Execute()
	if inner, ok := errors.AsType[*commandError](err); !ok || inner.err != failed || !ran { //nolint:errorlint // the very value, not wrapped again
		t.Errorf("a command's own error: %#v, prepared: %v", err, ran)
	}
	cmd.SetArgs(nil)
	if _, ok := errors.AsType[*commandError](cmd.Execute()); ok {
		t.Error("a missing argument counts as a command's own error")
	}
}

func TestArgumentsAreCountedInWords(t *testing.T) {
	cmd := &cobra.Command{Use: "diff SNAPSHOT"}
	for _, c := range []struct {
		name      string
		low, high int
		given     int
		want      string // "": fine
	}{
		{"none allowed", 0, 0, 1, "diff takes no snapshots; got 1"},
		{"exactly two", 2, 2, 3, "diff takes 2 snapshots; got 3"},
		{"one or two", 1, 2, 0, "diff takes 1 to 2 snapshots; got 0"},
		{"two or more, one given", 2, unlimited, 1, "diff takes 2 or more snapshots; got 1"},
		{"two or more, nine given", 2, unlimited, 9, ""},
		{"exactly as many as asked", 2, 2, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := takes(c.low, c.high, "snapshots")(cmd, make([]string, c.given)); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestInterruptIsSaidInAWord(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	env, _, stderr := newTestEnvironment()
	cancel()
	code := env.conclude(ctx, fmt.Errorf("step 3: %w", ctx.Err()))
	if code != exitOwn || stderr.String() != "memdiag: interrupted\n" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

// failingWriter is a standard output that takes nothing.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestStandardOutputThatFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		writing  error
		returned error // by the command; nil: it ignored the error of its write
		code     int
	}{
		{"a closed pipe is success when the command ignores it", syscall.EPIPE, nil, exitFine},
		{"a closed pipe is success when the command returns it", syscall.EPIPE, syscall.EPIPE, exitFine},
		{"a closed pipe does not hide a leak", syscall.EPIPE, &exitError{code: exitLeak}, exitLeak},
		{"a closed pipe does not hide another error", syscall.EPIPE, errors.New("x"), exitOwn},
		{"a full disk is an error even when the command ignores it", syscall.ENOSPC, nil, exitOwn},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, _, _ := newTestEnvironment()
			env.stdout.w = failingWriter{c.writing}
			fmt.Fprintln(env.stdout, "data")
			if code := env.conclude(t.Context(), c.returned); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

// panickingWriter stands for a defect in the middle of a command.
type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic("index out of range") }

func TestPanicIsOneLine(t *testing.T) {
	for _, c := range []struct {
		name, debug string
		stack       bool
	}{
		{"the stack is hidden", "", false},
		{"the stack is shown to who asks", "1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, _, stderr := newTestEnvironment()
			env.getenv = func(name string) string {
				if name == "MEMDIAG_DEBUG" {
					return c.debug
				}
				return ""
			}
			env.stdout.w = panickingWriter{}
			code := env.conclude(t.Context(), env.execute(t.Context(), []string{"version"}))
			first, rest, _ := strings.Cut(stderr.String(), "\n")
			if code != exitOwn || first != "memdiag: internal error: index out of range" {
				t.Errorf("code %d, first line %q", code, first)
			}
			if got := strings.Contains(rest, "panickingWriter"); got != c.stack {
				t.Errorf("stack shown: %v; stderr %q", got, rest)
			}
		})
	}
}
