package files

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// A run of a thousand ranks could not be judged: the folder was listed, and a snapshot of each
// rank opened, for each rank anew.
func TestARankIsReadWithoutTheFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	write := func(rank int) {
		for _, step := range []int64{0, 10, 20} {
			s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep}, Rank: rank, Producer: "test", Stacks: snapshot.NewStacks()}
			f, err := os.Create(filepath.Join(dir, rundir.RankSnapshotName(step, rank)))
			if err != nil {
				t.Fatal(err)
			}
			if err := native.Encode(f, s); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for rank := range 4 {
		write(rank)
	}
	folder, err := Opener{}.LookThrough(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := folder.OpenRank(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{0, 1, 3} {
		paths, _ := filepath.Glob(filepath.Join(dir, "*"+rundir.RankSuffix(rank)+".*"))
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(9) // which the folder had not when it was looked through
	run, err := folder.OpenRank(2)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Snapshots) != 3 || !slices.Equal(run.Ranks, []int{0, 1, 2, 3}) || !slices.Equal(run.Notes, want.Notes) || !slices.Equal(run.Files, want.Files) {
		t.Errorf("%d snapshots of ranks %v: %q", len(run.Snapshots), run.Ranks, run.Notes)
	}
	if again, err := OpenRank(dir, 9); err != nil || !slices.Equal(again.Ranks, []int{2, 9}) {
		t.Errorf("%v, %v", again, err)
	}
}
