//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newPipe is the path of a named pipe.
func newPipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestResultKeepsPipes(t *testing.T) {
	path := newPipe(t)
	// Open for both, so that neither side waits for the other.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	env, _, _ := newTestEnvironment()
	if err := env.result(path, false, writes("data", nil)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if n, err := pipe.Read(got); err != nil || string(got[:n]) != "data" {
		t.Errorf("through the pipe: %q, %v", got[:n], err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Error("the pipe was replaced by a file")
	}
}

// interruptedSoon is an environment that is interrupted while a test's call waits.
func interruptedSoon() *environment {
	env, _, _ := newTestEnvironment()
	interrupted := make(chan struct{})
	env.interrupted = interrupted
	time.AfterFunc(50*time.Millisecond, func() { close(interrupted) })
	return env
}

// ends fails unless call returns, with an interrupt.
func ends(t *testing.T, call func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it still waits")
	}
}

func TestInterruptEndsTheWaitForAPipesReader(t *testing.T) {
	path := newPipe(t)
	// After the test, so that the goroutine that waits can end.
	t.Cleanup(func() {
		if r, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
			_ = r.Close()
		}
	})
	ends(t, func() error { return interruptedSoon().result(path, false, writes("data", nil)) })
	ends(t, func() error { return interruptedSoon().appendTo(path, writes("data", nil)) })
}

func TestInterruptEndsTheWaitForAReaderThatStandsStill(t *testing.T) {
	path := newPipe(t)
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	ends(t, func() error {
		return interruptedSoon().result(path, false, func(w io.Writer) error {
			_, err := w.Write(make([]byte, 4<<20))
			return err
		})
	})
}

func TestAGateDoesNotWaitForAPipesReaderBeforeItJudges(t *testing.T) {
	path := newPipe(t)
	g := &gateCall{env: interruptedSoon()}
	g.files.markdown = path
	if err := g.canWrite(); err != nil {
		t.Error(err)
	}
}

// standingStill is a standard output that sends an interrupt and takes nothing.
type standingStill chan struct{}

func (s standingStill) Write([]byte) (int, error) {
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	<-s
	return 0, errors.New("closed")
}

// Not beside other tests: the signal is for all of the process.
func TestTheFirstSignalEndsACommandThatNobodyReads(t *testing.T) {
	out := make(standingStill)
	defer close(out)
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run([]string{"version"}, nil, out, &stderr) }()
	select {
	case code := <-code:
		if code != exitOwn || stderr.String() != "memdiag: interrupted\n" {
			t.Errorf("code %d, stderr %q", code, stderr.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it still waits")
	}
}
