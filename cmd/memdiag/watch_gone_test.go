package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/watch"
)

// TestARunThatIsDeletedEndsItsWatch: with the code of input that cannot be read.
func TestARunThatIsDeletedEndsItsWatch(t *testing.T) {
	t.Parallel()
	env, _, _ := newTestEnvironment()
	dir := filepath.Join(t.TempDir(), "my-run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	follower := env.follower(dir, time.Millisecond, diff.DefaultOptions(), nil)
	follower.Open = func(each func(*snapshot.Run) error) error { return each(&snapshot.Run{Path: dir}) }
	w := watching{env: env}
	err := w.follow(t.Context(), follower, func(*watch.Look, []report.Live) error { return os.Remove(dir) })
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitBadInput {
		t.Errorf("%v", err)
	}
}
