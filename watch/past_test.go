package watch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// TestALateWatchSaysWhatOneFromTheBeginningDoes: it replays what the folder still has.
func TestALateWatchSaysWhatOneFromTheBeginningDoes(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	for step := int64(0); step <= 248; step += 8 {
		s := leaking(step)
		s.Mark.Time = time.Unix(1_000_000+step, 0)
		if err := out.WriteSnapshot(step, s); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []report.LiveKind
	var at []int64
	for first := true; ; first = false {
		look := next(t, f)
		for _, e := range look.Events(first) {
			last := e.Run.Snapshots[len(e.Run.Snapshots)-1].Mark
			kinds, at = append(kinds, e.Kind), append(at, last.Step)
			if look.Past && !e.Time.Equal(last.Time) {
				t.Errorf("%s at %v, of %v", e.Kind, e.Time, last.Time)
			}
			if e.Kind == report.LiveBegun && e.Said != f.Dir+", 32 snapshots so far" {
				t.Error(e.Said)
			}
		}
		if !look.Past {
			break
		}
	}
	if want := []report.LiveKind{report.LiveBegun, report.LiveSuspected, report.LiveLeak}; !slices.Equal(kinds, want) || at[1] != 32 || at[2] != 96 {
		t.Errorf("%v at %d", kinds, at)
	}
}

// TestWhatCannotBeReadIsReadAgain: a disk that fails for a while loses no alarm, and is reported once.
func TestWhatCannotBeReadIsReadAgain(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	open, fails := f.Open, false
	f.Open = func(each func(*snapshot.Run) error) error {
		if fails {
			return errors.New("snapshot_64: input/output error")
		}
		return open(each)
	}
	var kinds []report.LiveKind
	for step := int64(0); step < 160; step += 4 {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		fails = step >= 64 && step < 72
		if step == 68 { // the same again, which is not reported
			continue
		}
		look := next(t, f)
		if look.Failed != "" != fails || len(look.Ranks) != 1 {
			t.Fatalf("step %d: %+v", step, look)
		}
		for _, e := range look.Events(step == 0) {
			kinds = append(kinds, e.Kind)
		}
	}
	if want := []report.LiveKind{report.LiveBegun, report.LiveSuspected, report.LiveUnread, report.LiveLeak}; !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds)
	}
}

// TestASnapshotThatIsMissedOnceIsNotReported: while a run is read, the recorder makes room. One that stays unreadable is reported once.
func TestASnapshotThatIsMissedOnceIsNotReported(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	open, missing := f.Open, ""
	f.Open = func(each func(*snapshot.Run) error) error {
		return open(func(run *snapshot.Run) error {
			if missing != "" {
				run.Unread = []string{missing}
			}
			return each(run)
		})
	}
	var said []string
	for step := range int64(7) {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		missing = []string{"", "gone", "", "broken", "broken", "broken", "broken"}[step]
		for _, e := range next(t, f).Events(false) {
			said = append(said, e.Said)
		}
	}
	if !slices.Equal(said, []string{"broken"}) {
		t.Errorf("%q", said)
	}
}

// TestWhatComesWhileARunIsReadIsForTheNextLook: of a thousand ranks always one writes, and all were read five times.
func TestWhatComesWhileARunIsReadIsForTheNextLook(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	open, opened := f.Open, int64(0)
	f.Open = func(each func(*snapshot.Run) error) error {
		if err := out.WriteSnapshot(10+opened, leaking(10+opened)); err != nil {
			t.Error(err)
		}
		opened++
		return open(each)
	}
	if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	}
	for looks := int64(1); looks < 4; looks++ {
		if next(t, f); opened != looks {
			t.Fatalf("look %d: the run was read %d times", looks, opened)
		}
	}
}

// TestWhatIsNeverReadableAgainEndsTheWatchOfADeadRun, as after a file system went: it is reported, tried again, and is then an error.
func TestWhatIsNeverReadableAgainEndsTheWatchOfADeadRun(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	open, stale, opened := f.Open, errors.New("stale file handle"), 0
	fails := false
	f.Open = func(each func(*snapshot.Run) error) error {
		if opened++; fails {
			return stale
		}
		return open(each)
	}
	dies(t, f)
	if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	}
	next(t, f)
	fails = true
	if err := out.WriteSnapshot(1, leaking(1)); err != nil {
		t.Fatal(err)
	}
	if look := next(t, f); look.Failed != stale.Error() {
		t.Fatalf("%+v", look)
	}
	f.Retry = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if look, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || opened != 2 {
		t.Errorf("before it is time: %+v, %v, read %d times", look, err, opened)
	}
	f.Retry = 0
	if look, err := f.Next(t.Context()); !errors.Is(err, stale) {
		t.Errorf("%+v, %v", look, err)
	}
}
