package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func TestInterruptEndsTheWaitForAComputation(t *testing.T) {
	interrupted, blocked := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(blocked) })
	env := &environment{interrupted: interrupted}
	told := make(chan struct{}, 1)
	tell := func(time.Duration) {
		select {
		case told <- struct{}{}:
			close(interrupted)
		default:
		}
	}
	_, err := awaited(env, tell, func() (int, error) { <-blocked; return 1, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestPanicOfAComputationIsAnError(t *testing.T) {
	_, err := awaited(&environment{}, noNews, func() (int, error) { panic("broken") })
	if _, ok := errors.AsType[*panicError](err); !ok {
		t.Errorf("error %v", err)
	}
}

// TestInterruptedCommandsWriteNothing runs every command that reads and writes
// after an interrupt.
func TestInterruptedCommandsWriteNothing(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	w, err := rundir.Create(run, snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{0, 50} {
		if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: snapshot.NoRank}); err != nil {
			t.Fatal(err)
		}
	}
	out := func(name string) string { return filepath.Join(dir, name) }
	one := filepath.Join(run, "snapshot_50.memdiag")
	for _, args := range [][]string{
		{"diff", run}, {"diff", run, "-o", out("d.json")}, {"report", run, "-o", out("r.html")}, {"plot", run, "-o", out("p.png")},
		{"flame", run, "-o", out("f.svg")}, {"show", one}, {"convert", one, "-o", out("c.json")},
	} {
		t.Run(strings.Join(args[:1], " "), func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			env, stdout, stderr := newTestEnvironment()
			code := env.conclude(ctx, env.execute(ctx, args))
			if code != exitOwn || stderr.String() != "memdiag: interrupted\n" || stdout.Len() > 0 {
				t.Errorf("code %d, said %q, printed %q", code, stderr, stdout)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

func TestInterruptedResultIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	env, stdout, _ := newTestEnvironment()
	interrupted := make(chan struct{})
	env.interrupted = interrupted
	write := func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		close(interrupted)
		_, err := io.WriteString(w, "whole")
		return err
	}
	if err := env.result(filepath.Join(dir, "a.json"), false, write); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left := names(t, dir); left != nil || stdout.Len() > 0 {
		t.Errorf("left %v", left)
	}
}
