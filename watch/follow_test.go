package watch_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
	"github.com/memdiag/memdiag/watch"
)

// leaking is a snapshot after so many steps, each of which leaves a block.
func leaking(step int64) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks(),
		Devices:  []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
		Segments: []snapshot.Segment{{Address: 1 << 12, Size: snapshot.Bytes(step+1) << 12, NumBlocks: int(step + 1)}},
	}
	id := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 3}})
	b := &s.Blocks
	for birth := range step + 1 {
		b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(birth+1)<<12)
		b.Size, b.Requested = append(b.Size, 4096), append(b.Requested, 4096)
		b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, id), append(b.BirthStep, birth)
	}
	return s
}

func follow(t *testing.T) (*rundir.Writer, *watch.Follower) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	out, err := rundir.Create(dir, snapshot.Info{Version: "test", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return out, &watch.Follower{
		Dir: dir, Every: 5 * time.Millisecond, Allowance: time.Hour, Back: time.Hour, Judge: diff.DefaultOptions().Analyze,
		Open: func(each func(*snapshot.Run) error) error {
			run, err := files.OpenRun(dir)
			if err != nil {
				return err
			}
			return each(run)
		},
	}
}

func next(t *testing.T, f *watch.Follower) *watch.Look {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look, err := f.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return look
}

func TestARunIsFollowedToItsEnd(t *testing.T) {
	for _, held := range []int{0, 1} { // with the blocks of all snapshots, and without
		t.Run(strconv.Itoa(held), func(t *testing.T) { followsToTheEnd(t, held) })
	}
}

func followsToTheEnd(t *testing.T, held int) {
	t.Parallel()
	out, f := follow(t)
	f.Held = held
	var kinds []report.LiveKind
	for step := range int64(120) {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		if step%8 > 0 {
			continue
		}
		look := next(t, f)
		if n := len(look.Ranks[0].Run.Snapshots); n != int(step)+1 || !look.Fresh || look.Ended {
			t.Fatalf("step %d: %d snapshots, fresh %v, ended %v", step, n, look.Fresh, look.Ended)
		}
		if all := look.Ranks[0].Run.Snapshots; step == 16 && ((all[8].Blocks.Len() == 0) != (held == 1) || all[step].Blocks.Len() == 0) {
			t.Errorf("%d blocks of a snapshot between are held, and %d of the last", all[8].Blocks.Len(), all[step].Blocks.Len())
		}
		for _, e := range look.Events(step == 0) {
			kinds = append(kinds, e.Kind)
		}
	}
	if err := out.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	look := next(t, f)
	for _, e := range look.Events(false) {
		kinds = append(kinds, e.Kind)
	}
	want := []report.LiveKind{report.LiveBegun, report.LiveSuspected, report.LiveLeak, report.LiveEnded}
	if len(kinds) != len(want) || !look.Ended || look.Died || look.Leaks() != 1 {
		t.Fatalf("%v, want %v; ended %v, died %v, %d leaks", kinds, want, look.Ended, look.Died, look.Leaks())
	}
	for i, kind := range kinds {
		if kind != want[i] {
			t.Errorf("event %d is %s, want %s", i, kind, want[i])
		}
	}
	if _, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAFolderThatGoesIsAnError(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	}
	next(t, f)
	if err := os.RemoveAll(f.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestARunWithoutSnapshotsIsWaitedFor: it may have only begun.
func TestARunWithoutSnapshotsIsWaitedFor(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	if err := os.WriteFile(filepath.Join(f.Dir, ".snapshot_0.memdiag.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if look, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%+v, %v", look, err)
	}
	if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	}
	next(t, f)
}

// dies makes all processes of a followed run be gone.
func dies(t *testing.T, f *watch.Follower) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	gone := exec.CommandContext(t.Context(), "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	open := f.Open
	f.Open = func(each func(*snapshot.Run) error) error {
		return open(func(run *snapshot.Run) error {
			run.Info.Host = host
			run.Tree = &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: gone.Process.Pid, Started: 1}}}
			return each(run)
		})
	}
}

// TestARunWhoseProcessesAreGoneHasDied: the recorder and all that it followed were killed.
func TestARunWhoseProcessesAreGoneHasDied(t *testing.T) {
	t.Parallel()
	_, f := follow(t)
	dies(t, f)
	path := filepath.Join(f.Dir, "snapshot_0.memdiag")
	if out, err := rundir.Create(filepath.Join(t.TempDir(), "other"), snapshot.Info{Version: "test"}); err != nil {
		t.Fatal(err)
	} else if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	} else if err := os.Rename(filepath.Join(out.Dir(), "snapshot_0.memdiag"), path); err != nil {
		t.Fatal(err)
	}
	next(t, f)
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{path, filepath.Join(f.Dir, rundir.InfoName)} {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	next(t, f) // the times are news
	if look := next(t, f); !look.Died || !look.Ended {
		t.Errorf("ended %v, died %v", look.Ended, look.Died)
	}
	if look, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %+v, %v", look, err)
	}
}

// TestNobodyWaitsForNews: a run that has some at each moment ends by Ctrl-C, too.
func TestNobodyWaitsForNews(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	if err := out.WriteSnapshot(0, leaking(0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if look, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", look, err)
	}
}

// TestALinkToARunIsFollowed: a run is often reached by one, such as runs/latest.
func TestALinkToARunIsFollowed(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(f.Dir, link); err != nil {
		t.Skip(err)
	}
	f.Dir = link
	for step := range int64(3) {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		if n := len(next(t, f).Ranks[0].Run.Snapshots); n != int(step)+1 {
			t.Fatalf("step %d: %d snapshots", step, n)
		}
	}
}

// TestAnotherRunInTheFolderIsJudgedAnew: a recording began again under the same name.
func TestAnotherRunInTheFolderIsJudgedAnew(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	began := time.Now()
	for again := range 2 {
		var kinds []report.LiveKind
		for step := range int64(120) {
			if err := out.WriteSnapshot(step, leaking(step)); err != nil {
				t.Fatal(err)
			}
			if step%8 > 0 {
				continue
			}
			look := next(t, f)
			if want := again == 1 && step == 0; look.Other != want {
				t.Fatalf("run %d, step %d: another run %v", again, step, look.Other)
			}
			for _, e := range look.Events(again == 0 && step == 0) {
				kinds = append(kinds, e.Kind)
			}
		}
		if want := []report.LiveKind{report.LiveBegun, report.LiveSuspected, report.LiveLeak}; !slices.Equal(kinds, want) {
			t.Errorf("run %d: %v, want %v", again, kinds, want)
		}
		if again > 0 {
			break
		}
		if err := os.RemoveAll(f.Dir); err != nil {
			t.Fatal(err)
		}
		var err error
		if out, err = rundir.Create(f.Dir, snapshot.Info{Version: "test", Started: began.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
}
