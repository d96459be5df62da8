package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

func create(t *testing.T) *Writer {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "runs", "a"), snapshot.Info{Workload: "L30", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// content is the files of a folder by name, as text.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func info(t *testing.T, dir string) (i snapshot.Info) {
	t.Helper()
	if err := json.Unmarshal([]byte(content(t, dir)[InfoName]), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestARunIsRecorded(t *testing.T) {
	w := create(t)
	if got := info(t, w.Dir()); got.Workload != "L30" || got.SchemaVersion != SchemaVersion || got.Finished != nil {
		t.Errorf("run.json at the start: %+v", got)
	}
	log, err := w.OpenSeries(make([]snapshot.Device, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteSnapshot(50, &snapshot.Snapshot{Mark: snapshot.Mark{Step: 50}}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	if err := w.Finish(3, at, "a note"); err != nil {
		t.Fatal(err)
	}
	files := content(t, w.Dir())
	if len(files) != 3 {
		t.Errorf("files: %q", files)
	}
	s, err := native.Decode("s", strings.NewReader(files["snapshot_50.memdiag"]), int64(len(files["snapshot_50.memdiag"])), nil)
	if err != nil || s.Mark.Step != 50 {
		t.Errorf("the snapshot: %v, %v", s, err)
	}
	series, notes, err := native.DecodeSeries("s", strings.NewReader(files[SeriesName]), int64(len(files[SeriesName])))
	if err != nil || len(notes) > 0 || len(series.Points) != 1 {
		t.Errorf("the series: %v, %q, %v", series, notes, err)
	}
	code := 3
	want := snapshot.Info{SchemaVersion: SchemaVersion, Workload: "L30", Version: "test", Finished: &at, ExitCode: &code, Notes: []string{"a note"}}
	if d := cmp.Diff(want, info(t, w.Dir())); d != "" {
		t.Error(d)
	}
}

func TestANewRunDoesNotMixWithWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(dir, snapshot.Info{}); err != nil {
		t.Fatal("an empty folder:", err)
	}
	before := content(t, dir)
	_, err := Create(dir, snapshot.Info{Workload: "other"})
	var full *NotEmptyError
	if !errors.As(err, &full) || full.Dir != dir || full.Hint() == "" {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestWhatWasKilledBeforeItBeganMayBeTriedAgain(t *testing.T) {
	rank := 1
	for _, c := range []struct {
		left string
		rank *int
	}{{".run.json.tmp", nil}, {".run.json.tmp", &rank}, {".run_rank1.json.tmp", &rank}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.left), []byte(`{"schema_version": 1, "a longer file than the one that is written": [`+strings.Repeat("1,", 9999)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(dir, snapshot.Info{Rank: c.rank}); err != nil {
			t.Errorf("%s, as rank %v: %v", c.left, c.rank, err)
			continue
		}
		info(t, dir)
	}
}

func TestAStepIsRecordedOnce(t *testing.T) {
	w := create(t)
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Producer: "first"}); err != nil {
		t.Fatal(err)
	}
	before := content(t, w.Dir())
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Producer: "second"}); err == nil {
		t.Error("it was recorded twice")
	}
	if err := w.WriteSnapshot(-1, &snapshot.Snapshot{}); err == nil {
		t.Error("a step below zero was recorded")
	}
	if _, err := w.OpenSeries(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.OpenSeries(nil); err == nil {
		t.Error("a second series was opened")
	}
	delete(before, SeriesName)
	after := content(t, w.Dir())
	delete(after, SeriesName)
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
}

// failing is a file on a disk that is full, or that fails later.
type failing struct {
	file
	room          int
	onSync, onEnd error
}

func (f *failing) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	written, err := f.file.Write(b[:n])
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return written, err
}

func (f *failing) Sync() error {
	if f.onSync != nil {
		return f.onSync
	}
	return f.file.Sync()
}

func (f *failing) Close() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	return f.onEnd
}

func TestADiskThatFailsLosesNothingThatIsRecorded(t *testing.T) {
	var whole bytes.Buffer
	next := &snapshot.Snapshot{Mark: snapshot.Mark{Step: 2}, Notes: []string{strings.Repeat("n", 100_000)}}
	if err := native.Encode(&whole, next); err != nil {
		t.Fatal(err)
	}
	faults := map[string]failing{
		"there is no room at all":       {room: 0},
		"there is room for half of it":  {room: whole.Len() / 2},
		"there is room for all but one": {room: whole.Len() - 1},
		"the disk fails at the sync":    {room: 1 << 30, onSync: syscall.ENOSPC},
		"the disk fails at the close":   {room: 1 << 30, onEnd: syscall.ENOSPC},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			w := create(t)
			if err := w.WriteSnapshot(1, &snapshot.Snapshot{Mark: snapshot.Mark{Step: 1}}); err != nil {
				t.Fatal(err)
			}
			before := content(t, w.Dir())
			w.create = func(path string) (file, error) {
				f, err := createFile(path)
				broken := fault
				broken.file = f
				return &broken, err
			}
			for what, do := range map[string]func() error{
				"snapshot": func() error { return w.WriteSnapshot(2, next) },
				"run.json": func() error { w.info.Notes = []string{next.Notes[0]}; return w.Finish(0, time.Now()) },
			} {
				if err := do(); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", what, err)
				}
				if d := cmp.Diff(before, content(t, w.Dir())); d != "" {
					t.Errorf("%s: %s", what, d)
				}
			}
			w.info.Notes = nil
			if err := w.Finish(0, time.Now(), "full"); err != nil {
				t.Error("a short run.json needs no room:", err)
			}
			if info, err := readInfo(filepath.Join(w.Dir(), InfoName)); err != nil || info.Finished == nil || !slices.Equal(info.Notes, []string{"full"}) {
				t.Errorf("%v: %+v", err, info)
			}
			w.create = createFile
			if err := w.WriteSnapshot(2, next); err != nil {
				t.Error("when there is room again:", err)
			}
		})
	}
}

// A folder that was deleted under a recording was taken for input that is missing.
func TestAFolderThatWentAwayIsAFailureOfWriting(t *testing.T) {
	w := create(t)
	if err := os.RemoveAll(w.Dir()); err != nil {
		t.Fatal(err)
	}
	_, series := w.OpenSeries(nil)
	for name, err := range map[string]error{
		"snapshot_1.memdiag": w.WriteSnapshot(1, &snapshot.Snapshot{}),
		SeriesName:           series,
		InfoName:             w.Finish(0, time.Now()),
	} {
		path := filepath.Join(w.Dir(), name)
		var failed *WriteError
		if !errors.As(err, &failed) || failed.Path != path || strings.Count(err.Error(), w.Dir()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASnapshotThatBreaksTheModelLeavesNoFile(t *testing.T) {
	w := create(t)
	before := content(t, w.Dir())
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Blocks: snapshot.Blocks{Size: make([]snapshot.Bytes, 1)}}); err == nil {
		t.Fatal("it was written")
	}
	if d := cmp.Diff(before, content(t, w.Dir())); d != "" {
		t.Error(d)
	}
}

func TestARankJoinsNoOtherFolder(t *testing.T) {
	rank := 1
	for _, name := range []string{"notes.txt", InfoName} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"schema_version":1}`), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Create(dir, snapshot.Info{Rank: &rank})
		if _, ok := errors.AsType[*NotEmptyError](err); !ok || len(content(t, dir)) != 1 {
			t.Errorf("%s: %v; there is %q", name, err, content(t, dir))
		}
	}
}

func TestARunIsItsOwnersAlone(t *testing.T) {
	w := create(t)
	if _, err := w.OpenSeries(make([]snapshot.Device, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name := range content(t, w.Dir()) {
		if info, err := os.Stat(filepath.Join(w.Dir(), name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for dir, want := range map[string]bool{w.Dir(): true, filepath.Dir(w.Dir()): false} {
		if info, err := os.Stat(dir); err != nil || (info.Mode().Perm() == 0o700) != want {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}

func TestAFolderKeepsItsMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs") + "/"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, snapshot.Info{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	below := filepath.Join(dir, "a", "b") + "/"
	if _, err := Create(below, snapshot.Info{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(below); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("with a slash at its end: %v, %v", info.Mode(), err)
	}
}

// Who may write into the folder could have memdiag write over any file of its user.
func TestNoLinkIsFollowedInARun(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{temporaryName(InfoName), temporaryName(SnapshotName(1)), SeriesName} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}); err != nil {
		t.Error(err)
	}
	if _, err := w.OpenSeries(make([]snapshot.Device, 1)); err == nil {
		t.Error("the series is written through a link")
	}
	if err := w.Finish(0, time.Now()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the links: %q, %v", text, err)
	}
}

func TestACommandThatIsLeftOutIsNone(t *testing.T) {
	for _, c := range []struct {
		command []string
		want    string
	}{{nil, ""}, {[]string{}, `"command": []`}, {[]string{"x", "--token=abcd"}, `"--token=***"`}} {
		w, err := Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{Command: c.command})
		if err != nil {
			t.Fatal(err)
		}
		text := content(t, w.Dir())[InfoName]
		if !strings.Contains(text, c.want) || strings.Contains(text, "command") != (c.want != "") || strings.Contains(text, "abcd") {
			t.Errorf("%q: %s", c.command, text)
		}
	}
}
