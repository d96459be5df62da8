package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot/rundir"
)

// workplace is a folder with two runs; the later comes first by name,
// and two loose snapshots of one stem.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	newRun(t, filepath.Join(dir, "runs", "a"), noon.Add(time.Hour), 0, 50)
	newRun(t, filepath.Join(dir, "runs", "b"), noon, 0, 60)
	write(t, dir, "loose_1.memdiag", ours(t, 1, 0, ""))
	write(t, dir, "twice_1.memdiag", ours(t, 1, 0, ""))
	write(t, dir, "twice_1.json", torchJSON(1))
	write(t, dir, "loose_1.png", "\x89PNG\r\n\x1a\n")
	write(t, dir, "text", "a file of another kind")
	return dir
}

// check compares a path or an error with what is wanted: a path below dir, or
// what is in the error's text and hint.
func check(t *testing.T, dir, got string, err error, want, wantErr, wantHint string) {
	t.Helper()
	if wantErr == "" {
		if err != nil || got != filepath.Join(dir, filepath.FromSlash(want)) {
			t.Errorf("got %q, %v; want %s", got, err, want)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), wantErr) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %q, %v; want the error %q", got, err, wantErr)
	}
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(input.Hint(), wantHint) {
		t.Errorf("got the hint %q, want %q in it", input.Hint(), wantHint)
	}
	if strings.Contains(wantErr, "no such") && !errors.Is(err, fs.ErrNotExist) {
		t.Error("it does not say that it is missing")
	}
}

func TestASnapshotIsFoundByPathOrByName(t *testing.T) {
	for name, c := range map[string]struct{ arg, want, err, hint string }{
		"a path":                                 {"runs/b/snapshot_60.memdiag", "runs/b/snapshot_60.memdiag", "", ""},
		"a path of no snapshot, for Open to say": {"text", "text", "", ""},
		"a name in this folder":                  {"loose_1", "loose_1.memdiag", "", ""},
		"a name in a folder":                     {"runs/b/snapshot_60", "runs/b/snapshot_60.memdiag", "", ""},
		"a name in the newest run":               {"snapshot_50", "runs/a/snapshot_50.memdiag", "", ""},
		"a whole name in the newest run":         {"snapshot_50.memdiag", "runs/a/snapshot_50.memdiag", "", ""},
		"a name that two files have":             {"twice_1", "", "2 snapshots of that name", "twice_1.json, twice_1.memdiag"},
		"a name that only an older run has":      {"snapshot_60", "", "no such snapshot here or in the newest run", "snapshot_0, snapshot_50"},
		"the beginning of a name":                {"snapshot_5", "", "no such snapshot", "snapshot_50"},
		"a name that a folder does not have":     {"runs/b/snapshot_50", "", "no such snapshot", "snapshot_0, snapshot_60"},
		"a folder that is not":                   {"nowhere/snapshot_50", "", "no such snapshot", "record"},
		"a folder with snapshots":                {"runs/a", "", "a folder, not a snapshot", "snapshot_50"},
		"standard input":                         {"-", "", "not standard input", "to a file first"},
		"no name":                                {"", "", "without a name", "loose_1, twice_1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workplace(t)
			got, err := Resolve(c.arg, dir)
			check(t, dir, got, err, c.want, c.err, c.hint)
		})
	}
}

func TestARunIsFoundByPathOrByName(t *testing.T) {
	for name, c := range map[string]struct{ arg, want, err, hint string }{
		"a path":               {"runs/b", "runs/b", "", ""},
		"a folder of any kind": {"runs", "runs", "", ""},
		"a name":               {"b", "runs/b", "", ""},
		"nothing: the newest":  {"", "runs/a", "", ""},
		"a name that is not":   {"c", "", "no such run", "runs/a"},
		"a file":               {"loose_1.memdiag", "", "a file, not a run", "folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workplace(t)
			got, err := ResolveRun(c.arg, dir)
			check(t, dir, got, err, c.want, c.err, c.hint)
		})
	}
}

func TestTheRunOfThisFolderComesBeforeThoseBelow(t *testing.T) {
	dir := newRun(t, filepath.Join(t.TempDir(), "run"), noon, 0)
	newRun(t, filepath.Join(dir, "below"), noon.Add(time.Hour), 0)
	got, err := ResolveRun("", dir)
	check(t, dir, got, err, "", "", "")
}

func TestAFolderOfLooseSnapshotsIsARunWhereThereIsNoOther(t *testing.T) {
	dir := t.TempDir()
	_, err := ResolveRun("", dir)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	write(t, dir, "snapshot_0.json", torchJSON(0))
	got, err := ResolveRun("", dir)
	check(t, dir, got, err, "", "", "")
}

func TestTwoRunsOfOneNameAreAmbiguous(t *testing.T) {
	dir := t.TempDir()
	newRun(t, filepath.Join(dir, "x", "run"), noon, 0)
	newRun(t, filepath.Join(dir, "y", "run"), noon, 0)
	got, err := ResolveRun("run", dir)
	check(t, dir, got, err, "", "2 runs of that name", filepath.Join("x", "run"))
}

func TestARunWhoseInfoIsBrokenIsAsOldAsItsFolder(t *testing.T) {
	dir := workplace(t)
	write(t, dir, "runs/c/"+rundir.InfoName, "{")
	at := noon.Add(2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "runs", "c"), at, at); err != nil {
		t.Fatal(err)
	}
	got, err := ResolveRun("", dir)
	check(t, dir, got, err, "runs/c", "", "")
}
