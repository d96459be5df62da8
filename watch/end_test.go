package watch_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/report"
)

// TestALeakThatOnlyTheEndShowsIsReported: nobody looked while the run went on, or not for long enough.
func TestALeakThatOnlyTheEndShowsIsReported(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	for step := int64(0); step <= 120; step += 8 {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	look := next(t, f)
	var kinds []report.LiveKind
	for _, e := range look.Events(true) {
		kinds = append(kinds, e.Kind)
		if _, begins, is := e.Alarm(); e.Kind == report.LiveLeak && (!is || !begins || e.Fingerprint == "" || e.Finding == nil) {
			t.Errorf("it is no alarm: %+v", e)
		}
	}
	if want := []report.LiveKind{report.LiveBegun, report.LiveLeak, report.LiveEnded}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	rank := &look.Ranks[0]
	if !look.Ended || look.Leaks() != 1 || len(rank.Result.Findings) == 0 || !rank.Leaks(&rank.Result.Findings[0]) {
		t.Errorf("ended %v, %d leaks", look.Ended, look.Leaks())
	}
}

func TestASnapshotThatCannotBeReadIsNamedOnce(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	broken := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(f.Dir, name), []byte("memdiag\n\x00no snapshot"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := func(step int64) (said []string) {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		for _, e := range next(t, f).Events(false) {
			if e.Kind == report.LiveUnread {
				said = append(said, e.Said)
			}
		}
		return said
	}
	broken("snapshot_1.memdiag")
	for _, step := range []int64{0, 2, 3} {
		if got := said(step); step == 2 && (len(got) != 1 || !strings.Contains(got[0], "snapshot_1.memdiag")) || step != 2 && len(got) > 0 {
			t.Errorf("step %d: %q", step, got)
		}
	}
	broken("snapshot_9.memdiag", "snapshot_4.memdiag", "snapshot_5.memdiag", "snapshot_6.memdiag", "snapshot_7.memdiag")
	said(8)
	if got := said(10); len(got) != 4 || got[3] != "2 more snapshots" {
		t.Errorf("many: %q", got)
	}
}

// TestTheLastLookIsTakenAtOnce, without the end of the run in its files: who records it knows.
func TestTheLastLookIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	if look, err := f.Last(); !errors.Is(err, io.EOF) {
		t.Errorf("nothing is there yet: %+v, %v", look, err)
	}
	for step := int64(0); step <= 120; step += 8 {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		if step == 8 {
			next(t, f)
		}
	}
	look, err := f.Last()
	if err != nil {
		t.Fatal(err)
	}
	if !look.Ended || look.Leaks() != 1 || !slices.ContainsFunc(look.Events(false), func(e report.Live) bool { return e.Kind == report.LiveLeak }) {
		t.Errorf("ended %v, %d leaks", look.Ended, look.Leaks())
	}
	if look, err := f.Last(); !errors.Is(err, io.EOF) {
		t.Errorf("again: %+v, %v", look, err)
	}
}
