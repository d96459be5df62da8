package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// recordRanks records a run of several ranks: rank r has r+1 points in its series.
func recordRanks(t *testing.T, ranks int) (dir string) {
	t.Helper()
	w, err := rundir.Create(t.TempDir(), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		log, err := w.OpenRankSeries(rank, make([]snapshot.Device, 1))
		if err != nil {
			t.Fatal(err)
		}
		for range rank + 1 {
			if err := log.AppendPoint(snapshot.Point{Meters: make([]snapshot.Meters, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []int64{0, 50} {
			if err := w.WriteRankSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: rank}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.WriteRankSnapshot(50, &snapshot.Snapshot{Rank: 0}); err == nil {
		t.Error("a step of a rank was recorded twice")
	}
	if err := w.WriteRankSnapshot(50, &snapshot.Snapshot{Rank: snapshot.NoRank}); err == nil {
		t.Error("a snapshot of no rank was recorded as one's")
	}
	if err := w.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

func TestEachRankOfARunIsReadByItself(t *testing.T) {
	dir := recordRanks(t, 3)
	for _, c := range []struct{ want, rank int }{{snapshot.NoRank, 0}, {0, 0}, {1, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("asked for %d, rank %d comes", c.want, c.rank), func(t *testing.T) {
			run, err := OpenRank(dir, c.want)
			if err != nil {
				t.Fatal(err)
			}
			if len(run.Snapshots) != 2 || run.Snapshots[1].Rank != c.rank || run.Snapshots[1].Mark.Step != 50 {
				t.Errorf("%d snapshots; the last is %+v", len(run.Snapshots), run.Snapshots[len(run.Snapshots)-1])
			}
			if run.Series == nil || len(run.Series.Points) != c.rank+1 {
				t.Errorf("the series is another's: %+v", run.Series)
			}
			if len(run.Notes) != 1 || !strings.Contains(run.Notes[0], fmt.Sprintf("files of 3 ranks; only those that name rank %d were read", c.rank)) {
				t.Errorf("notes: %q", run.Notes)
			}
		})
	}
	if _, err := OpenRank(dir, 3); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no snapshots of rank 3") {
		t.Errorf("a rank that is not there: %v", err)
	}
	if path, err := Resolve("snapshot_50_rank1", dir); err != nil || !strings.HasSuffix(path, rundir.RankSnapshotName(50, 1)) {
		t.Errorf("the name of a rank's snapshot leads to %s, %v", path, err)
	}
}

func TestSeriesNames(t *testing.T) {
	for name, want := range map[string]bool{
		"series.memdiag": true, "series_rank0.memdiag": true, "series_rank12.memdiag": true,
		"series_rank.memdiag": false, "series_rank01.memdiag": false, "series_rank1": false, "snapshot_0.memdiag": false, "series_rankx.memdiag": false,
	} {
		if rundir.IsSeriesName(name) != want {
			t.Errorf("IsSeriesName(%q) = %v", name, !want)
		}
	}
}

func TestReadingIsToldOfEachFileOfTheRankThatIsRead(t *testing.T) {
	dir := recordRanks(t, 3)
	var told []string
	o := Opener{Reading: func(path string, at, of int) {
		told = append(told, fmt.Sprintf("%s %d/%d", filepath.Base(path), at, of))
	}}
	if _, err := o.OpenRank(dir, 1); err != nil {
		t.Fatal(err)
	}
	want := []string{"snapshot_0_rank1.memdiag 1/2", "snapshot_50_rank1.memdiag 2/2"}
	if !slices.Equal(told, want) {
		t.Errorf("of a run: %q, want %q", told, want)
	}
	told = nil
	if _, err := o.OpenSnapshots(filepath.Join(dir, "snapshot_0_rank1.memdiag"), filepath.Join(dir, "snapshot_50_rank1.memdiag")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, want) {
		t.Errorf("of files: %q, want %q", told, want)
	}
}

func TestWhatIsLeftOutOfARunIsSaid(t *testing.T) {
	var b strings.Builder
	if err := native.Encode(&b, &snapshot.Snapshot{Mark: snapshot.Mark{Step: 50}, Rank: snapshot.NoRank}); err != nil {
		t.Fatal(err)
	}
	asJSON := func(step int) string {
		return fmt.Sprintf(`{"schema": "memdiag snapshot", "mark": {"step": %d}, "devices": [{"kind": "cpu"}], "stacks": [{"frames": []}],
"segments": [{"device": 0, "bytes": 8, "pool": "large", "blocks": [{"bytes": 8, "requested_bytes": 8, "state": "live"}]}]}`, step)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		says  string // "" for nothing
	}{
		{"a snapshot without a rank among two ranks", map[string]string{"snapshot_0_rank0.memdiag": b.String(), "snapshot_0_rank1.memdiag": b.String(), "snapshot_50.memdiag": b.String()},
			"1 snapshot left out, since others name ranks and these do not: snapshot_50.memdiag"},
		{"a text among two ranks", map[string]string{"snapshot_0_rank0.memdiag": b.String(), "snapshot_0_rank1.memdiag": b.String(), "notes.txt": "a text"}, ""},
		{"a snapshot as JSON", map[string]string{"snapshot_0.json": asJSON(0), "snapshot_50.memdiag": b.String()}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				write(t, dir, name, text)
			}
			run, err := OpenRun(dir)
			if err != nil {
				t.Fatal(err)
			}
			if said := slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, "left out") }); said != (c.says != "") || said != run.Partial || !strings.Contains(strings.Join(run.Notes, "\n"), c.says) {
				t.Errorf("notes %q, partial %v; want %q", run.Notes, run.Partial, c.says)
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, "snapshot_50.json", asJSON(50))
	write(t, dir, "snapshot_50.copy.json", asJSON(50))
	run, err := OpenRun(dir)
	if err != nil || len(run.Snapshots) != 1 || !strings.Contains(strings.Join(run.Notes, "\n"), "1 file left out, as another holds the same snapshot: snapshot_50.json") {
		t.Errorf("a snapshot as JSON, twice: %v, %+v", err, run)
	}
}
