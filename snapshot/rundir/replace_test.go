package rundir

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/processes"
)

const finishedInfo = `{"schema_version": 1, "seed": 0, "steps": 0, "every": 0, "started": "2026-01-02T03:04:05Z", "finished": "2026-01-02T03:04:06Z", "version": "v1"}`

// recordedFiles are a finished run with all names and contents that recordings write.
func recordedFiles(t *testing.T) map[string]string {
	t.Helper()
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var series, s bytes.Buffer
	if _, err := native.NewSeriesWriter(&series, nil); err != nil {
		t.Fatal(err)
	}
	if err := native.Encode(&s, &snapshot.Snapshot{Stacks: snapshot.NewStacks()}); err != nil {
		t.Fatal(err)
	}
	var long strings.Builder
	for n := range 9999 {
		fmt.Fprintf(&long, "%d,", n*n)
	}
	return map[string]string{
		"run.json": finishedInfo, "run_rank1.json": finishedInfo,
		"snapshot_5.memdiag": s.String(), "snapshot_0_rank12.memdiag": s.String(), "snapshot_t3.memdiag": s.String(),
		"snapshot_50_rank1.json": `{"memdiag_agent":1,"producer":`, "snapshot_t7.json": packed(`{"memdiag_agent":1,"x":[` + long.String()),
		"snapshot_9.pickle": "\x80\x04\x95\x00\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x07memdiag\x94}",
		"snapshot_t4.pb.gz": packed("\x0a\x04\x08\x01\x10\x02"), "series.memdiag": series.String(), "series_rank1.memdiag": series.String(),
		"host.csv": processes.HostHeader + "1,2,3,4\n", "processes.csv": processes.Header, "host_rank2.csv": "", "losses.csv": "step,source,loss\n1,backward,0.5\n", "peaks_rank1.csv": "step,phase,device,batch,length,peak\n",
		".snapshot_7.json.tmp": "{", ".claim_step": "", ".claim_tick_rank1": "", ".agent_12.json": "{}", "..agent_12.json.tmp": "{",
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// same reports how the files of a folder differ from what they are to be.
func same(t *testing.T, what, dir string, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, content(t, dir)); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestAFinishedRunIsReplacedAndNothingElseIs(t *testing.T) {
	dir := t.TempDir()
	theirs := make(map[string]string)
	for _, name := range []string{"report.html", "snapshot_notes.txt", "snapshot_5", "host.csv.bak", "train.py", "snapshot_3.pt", "snapshot_12.tar.gz",
		"snapshot_1.csv", "snapshot_1.py", "snapshot_t1.memdiag.bak", "snapshot_007.json", "snapshot_4.json.gz", "snapshot_-1.json", "snapshot_train.json",
		"run_rankx.json", "series_rank01.memdiag", ".mine.tmp", ".claim_mine", ".snapshot_1.py.tmp"} {
		theirs[name] = "of the user"
	}
	put(t, dir, theirs)
	if _, err := Replace(dir, snapshot.Info{Version: "v2"}); !errors.As(err, new(*NotEmptyError)) {
		t.Errorf("a folder without a run: %v", err)
	}
	put(t, dir, recordedFiles(t))
	w, err := Replace(dir, snapshot.Info{Version: "v2"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the old run, as long as the new one is recorded", filepath.Join(dir, keptName), recordedFiles(t))
	if err := w.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	if info(t, dir).Version != "v2" {
		t.Error("the old run is there still")
	}
	theirs[InfoName] = content(t, dir)[InfoName]
	same(t, "what stays", dir, theirs)
	if _, err := Replace(filepath.Join(dir, "new"), snapshot.Info{}); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestAFolderWithWhatIsNoRunOfOursStaysAsItIs(t *testing.T) {
	type change func(files map[string]string)
	set := func(name, text string) change { return func(files map[string]string) { files[name] = text } }
	for what, c := range map[string]struct {
		change change
		want   any
	}{
		"somebody's run.json":     {set("run.json", `{"version": "v1", "finished": "2026-01-02T03:04:05Z"}`), new(*RefusedError)},
		"with more fields":        {set("run.json", strings.Replace(finishedInfo, "{", `{"model": "bert", `, 1)), new(*RefusedError)},
		"of a later schema":       {set("run.json", strings.Replace(finishedInfo, ": 1", ": 2", 1)), new(*RefusedError)},
		"of no version":           {set("run.json", strings.Replace(finishedInfo, `"v1"`, `""`, 1)), new(*RefusedError)},
		"a list":                  {set("run.json", `[]`), new(*RefusedError)},
		"of another rank":         {set("run_rank7.json", `{}`), new(*RefusedError)},
		"a run that is recorded":  {set("run_rank1.json", strings.Replace(finishedInfo, `"finished": "2026-01-02T03:04:06Z", `, "", 1)), new(*UnfinishedError)},
		"the user's JSON":         {set("snapshot_1.json", `{"weights": []}`), new(*RefusedError)},
		"the user's pickle":       {set("snapshot_1.pickle", "\x80\x04\x95\x00\x01\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]"), new(*RefusedError)},
		"the user's protocol":     {set("snapshot_1.pb.gz", "weights"), new(*RefusedError)},
		"the user's memdiag":      {set("snapshot_1.memdiag", "weights"), new(*RefusedError)},
		"the user's series":       {set("series.memdiag", "weights"), new(*RefusedError)},
		"the user's list":         {set("host.csv", "host,port\n"), new(*RefusedError)},
		"the user's losses":       {set("losses.csv", "epoch,loss\n"), new(*RefusedError)},
		"a snapshot for a series": {func(files map[string]string) { files["series.memdiag"] = files["snapshot_5.memdiag"] }, new(*RefusedError)},
	} {
		dir := t.TempDir()
		files := recordedFiles(t)
		c.change(files)
		put(t, dir, files)
		if _, err := Replace(dir, snapshot.Info{Version: "v2"}); !errors.As(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		same(t, what, dir, files)
	}
}

func TestALinkWithARecordedNameIsNotReplaced(t *testing.T) {
	for _, name := range []string{"snapshot_1.json", "run_rank5.json", ".snapshot_1.json.tmp", "run.json"} {
		dir, target := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
		files := recordedFiles(t)
		delete(files, name)
		put(t, dir, files)
		put(t, filepath.Dir(target), map[string]string{"theirs": finishedInfo})
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		if _, err := Replace(dir, snapshot.Info{}); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: %v", name, err)
		}
		files[name] = finishedInfo // through the link
		same(t, name, dir, files)
	}
}

func TestACommandThatNamesAFileOfTheRunIsRefused(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, recordedFiles(t))
	path := filepath.Join(dir, "snapshot_5.memdiag")
	for _, word := range []string{path, filepath.Join(dir, ".") + "/../" + filepath.Base(dir) + "/run.json", "--from=" + path, "cat '" + path + "' | wc", "x:" + path} {
		if _, err := Replace(dir, snapshot.Info{}, "sh", word); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: %v", word, err)
		}
		same(t, word, dir, recordedFiles(t))
	}
	if _, err := Replace(dir, snapshot.Info{}, "sh", filepath.Join(dir, "train.py"), dir, "snapshot_5.memdiag"); err != nil {
		t.Errorf("no word names a file: %v", err)
	}
}

func TestARunThatCameToNothingGivesWayToTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, recordedFiles(t))
	replace := func() *Writer {
		t.Helper()
		w, err := Replace(dir, snapshot.Info{Version: "v2"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.OpenSeries(nil); err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string]string{"host.csv": processes.HostHeader})
		return w
	}
	w := replace()
	if done, err := w.PutBack(); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	same(t, "put back", dir, recordedFiles(t))

	w = replace()
	if err := w.WriteSnapshot(1, &snapshot.Snapshot{Stacks: snapshot.NewStacks()}); err != nil {
		t.Fatal(err)
	}
	before := slices.Collect(maps.Keys(list(t, dir)))
	if done, err := w.PutBack(); done || err != nil {
		t.Errorf("of a run with a snapshot: %v, %v", done, err)
	}
	if after := list(t, dir); len(after) != len(before) {
		t.Errorf("%v is left of %v", after, before)
	}

	fresh, err := Create(filepath.Join(dir, "new"), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := fresh.PutBack(); done || err != nil {
		t.Errorf("where nothing is replaced: %v, %v", done, err)
	}
}

// list is what a folder holds, folders too.
func list(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// Whenever memdiag is killed, the run that it was to replace is whole, in one folder or the
// other, until the new one has ended; and the next --force goes on from there.
func TestAKilledReplacementLosesNothing(t *testing.T) {
	files := recordedFiles(t)
	names := infoLast(slices.Sorted(maps.Keys(files)))
	if names[len(names)-1] != InfoName {
		t.Fatal(InfoName, "is not the last")
	}
	for moved := range len(names) + 1 {
		dir := t.TempDir()
		put(t, dir, files)
		kept := filepath.Join(dir, keptName)
		if err := os.Mkdir(kept, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := move(dir, kept, names[:moved]); err != nil {
			t.Fatal(err)
		}
		// A word is looked for where the files were put back, and refuses what follows.
		if _, err := Replace(dir, snapshot.Info{}, filepath.Join(dir, InfoName)); !errors.As(err, new(*RefusedError)) {
			t.Errorf("killed after %d files: %v", moved, err)
		}
		same(t, "put back", dir, files)
	}

	dir := t.TempDir()
	kept := filepath.Join(dir, keptName)
	put(t, dir, files)
	if _, err := Replace(dir, snapshot.Info{Version: "v2"}); err != nil {
		t.Fatal(err)
	}
	_, err := Replace(dir, snapshot.Info{Version: "v3"}) // as after kill -9
	var unfinished *UnfinishedError
	if !errors.As(err, &unfinished) || !strings.Contains(unfinished.Hint(), kept) {
		t.Errorf("a run that was killed: %v", err)
	}
	same(t, "the run before", kept, files)

	put(t, dir, map[string]string{InfoName: strings.Replace(finishedInfo, "v1", "v2", 1)}) // killed when it had ended
	for deleted := range names {
		if err := removeAll(kept, names[:deleted]); err != nil {
			t.Fatal(err)
		}
		if err := settle(dir); err != nil {
			t.Fatal(err)
		}
		if got := list(t, dir); len(got) != 1 || info(t, dir).Version != "v2" {
			t.Errorf("after %d of the old run were deleted: %v", deleted, got)
		}
		if err := os.Mkdir(kept, 0o777); err != nil {
			t.Fatal(err)
		}
		put(t, kept, files)
	}
}

// A program may write into the folder that the run before waits in, under a recording's name.
func TestWhatAProgramPutsBesideTheKeptRunIsNotDeleted(t *testing.T) {
	for _, name := range []string{"snapshot_77.memdiag", "snapshot_77.json", "series_rank7.memdiag", "host_rank7.csv", "snapshot_77.pickle"} {
		dir := t.TempDir()
		put(t, dir, recordedFiles(t))
		w, err := Replace(dir, snapshot.Info{Version: "v2"})
		if err != nil {
			t.Fatal(err)
		}
		theirs := filepath.Join(dir, keptName, name)
		put(t, filepath.Dir(theirs), map[string]string{name: "of the user"})
		if err := w.Finish(0, time.Now()); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := readInfo(filepath.Join(dir, InfoName)); err != nil || now.Version != "v2" || now.Finished == nil {
			t.Errorf("%s: the new run is %+v, %v", name, now, err)
		}
		if _, err := Replace(dir, snapshot.Info{}); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%s: the next replaces it: %v", name, err)
		}
		if text, err := os.ReadFile(theirs); err != nil || string(text) != "of the user" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestWhatIsInTheWayOfAKeptRunIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, keptName)
	if err := os.Mkdir(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, kept, recordedFiles(t))
	put(t, dir, map[string]string{"snapshot_5.memdiag": "of the user"})
	if _, err := Replace(dir, snapshot.Info{}); !errors.As(err, new(*RefusedError)) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "snapshot_5.memdiag")); err != nil || string(text) != "of the user" {
		t.Errorf("%q, %v", text, err)
	}
	if !list(t, kept)["snapshot_5.memdiag"] {
		t.Error("a file of the kept run is gone")
	}
}
