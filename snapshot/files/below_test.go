package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// foreign is a folder with two folders of PyTorch's snapshots; the first
// by name is newer and has a folder a step, and folders that are none.
func foreign(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"a/dumps/iteration_10/rank0.json", "a/dumps/iteration_20/rank0.json",
		"b/snapshot_0.json", "b/snapshot_1.json", "alone/snapshot_0.json",
	} {
		write(t, dir, name, torchJSON(0))
	}
	for _, name := range []string{"text/a", "text/b"} {
		write(t, dir, name, "hello")
	}
	for name, at := range map[string]time.Time{"a/dumps": noon, "b": noon.Add(-time.Hour)} {
		if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFoldersOfSnapshotsAreRuns(t *testing.T) {
	dir := foreign(t)
	if d := cmp.Diff([]string{filepath.FromSlash("a/dumps"), "b"}, Runs(dir)); d != "" {
		t.Error(d)
	}
	got, err := ResolveRun("", dir)
	check(t, dir, got, err, "a/dumps", "", "")
	got, err = ResolveRun("dumps", dir)
	check(t, dir, got, err, "a/dumps", "", "")

	newRun(t, filepath.Join(dir, "old"), noon.Add(-48*time.Hour), 0)
	got, err = ResolveRun("", dir)
	check(t, dir, got, err, "old", "", "") // a run of ours comes first
	got, err = Resolve("snapshot_0", dir)
	check(t, dir, got, err, "old/snapshot_0.memdiag", "", "")
}

func TestSnapshotsInThisFolderComeBeforeFoldersOfThem(t *testing.T) {
	dir := foreign(t)
	write(t, dir, "x.json", torchJSON(0))
	got, err := ResolveRun("", dir)
	check(t, dir, got, err, "", "", "")
}

func TestNamesAreThoseOfThisFolderElseOfTheNewestRun(t *testing.T) {
	dir := workplace(t)
	if d := cmp.Diff([]string{"loose_1", "twice_1"}, Names(dir)); d != "" {
		t.Error(d)
	}
	below := filepath.Join(dir, "runs")
	if d := cmp.Diff([]string{"snapshot_0", "snapshot_50"}, Names(below)); d != "" {
		t.Error(d)
	}
	// What flame left in a run looks like a profile of the heap.
	run := filepath.Join(below, "a")
	write(t, run, "growth.memdiag", ours(t, 1, 0, ""))
	if d := cmp.Diff([]string{"snapshot_0", "snapshot_50"}, Names(run)); d != "" {
		t.Error(d)
	}
	if got := Names(t.TempDir()); len(got) > 0 {
		t.Errorf("an empty folder has %q", got)
	}
}
