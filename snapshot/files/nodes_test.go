package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// recordNode records ranks of a run on a machine, whose clock is right or not.
func recordNode(t *testing.T, dir, host string, clock time.Time, ranks ...int) {
	t.Helper()
	w, err := rundir.Create(dir, snapshot.Info{Host: host, Started: clock})
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range ranks {
		for _, step := range []int64{0, 50} {
			if err := w.WriteRankSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step, Time: clock}, Rank: rank}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Finish(0, clock); err != nil {
		t.Fatal(err)
	}
}

func TestRunsOfSeveralMachinesAreOne(t *testing.T) {
	type node struct {
		host  string
		ranks []int
	}
	for _, c := range []struct {
		name  string
		nodes []node
		one   bool
	}{
		{"two machines", []node{{"a", []int{0, 1}}, {"b", []int{2, 3}}}, true},
		{"three, of one rank each", []node{{"a", []int{2}}, {"b", []int{0}}, {"c", []int{1}}}, true},
		{"a rank in two of them is of two runs", []node{{"a", []int{0, 1}}, {"b", []int{1, 2}}}, false},
		{"on one machine they are two runs", []node{{"a", []int{0}}, {"a", []int{1}}}, false},
		{"without a machine's name", []node{{"", []int{0}}, {"b", []int{1}}}, false},
		{"one has no ranks", []node{{"a", []int{0}}, {"b", nil}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var all []int
			for i, n := range c.nodes {
				clock := time.Unix(1_700_000_000, 0).AddDate(i, 0, 0) // a year apart
				recordNode(t, filepath.Join(dir, string(rune('a'+i)), "run"), n.host, clock, n.ranks...)
				all = append(all, n.ranks...)
			}
			slices.Sort(all)
			for _, name := range []string{"train.log", filepath.Join("logs", "a.out")} { // beside them
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("step 1, loss 0.5\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			folder, err := Opener{}.LookThrough(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !c.one {
				if run, err := folder.OpenRank(snapshot.NoRank); err == nil || !strings.Contains(err.Error(), "runs below it") {
					t.Errorf("%+v, %v", run, err)
				}
				return
			}
			for _, rank := range append([]int{snapshot.NoRank}, all...) {
				run, err := folder.OpenRank(rank)
				if err != nil || run.Path != dir || !slices.Equal(run.Ranks, all) || len(run.Snapshots) != 2 || run.Snapshots[0].Rank != max(rank, all[0]) || run.Partial {
					t.Fatalf("rank %d: %+v, %v", rank, run, err)
				}
				if note := run.Notes[len(run.Notes)-1]; !strings.HasPrefix(note, "a run of ") || !strings.Contains(note, "run of b has ranks") {
					t.Errorf("%q", run.Notes)
				}
			}
			if _, err := folder.OpenRank(9); err == nil || !strings.Contains(err.Error(), "no snapshots of rank 9") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestMachinesWithoutRanksThatRunOneCommandAreOneRun: each machine's place is its rank.
func TestMachinesWithoutRanksThatRunOneCommandAreOneRun(t *testing.T) {
	record := func(dir, host string, command ...string) {
		w, err := rundir.Create(dir, snapshot.Info{Host: host, Command: command})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []int64{0, 50} {
			if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: snapshot.NoRank}); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	record(filepath.Join(dir, "a"), "host-a", "python", "serve.py")
	record(filepath.Join(dir, "b"), "host-b", "python", "serve.py")
	folder, err := Opener{}.LookThrough(dir)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		run, err := folder.OpenRank(rank)
		if err != nil || !slices.Equal(run.Ranks, []int{0, 1}) || len(run.Snapshots) != 2 || run.Snapshots[1].Rank != rank || run.Machine != []string{"host-a", "host-b"}[rank] {
			t.Fatalf("rank %d: %+v, %v", rank, run, err)
		}
		if note := run.Notes[len(run.Notes)-1]; !strings.Contains(note, "b of host-b is taken as rank 1") {
			t.Errorf("%q", note)
		}
	}
	record(filepath.Join(dir, "c"), "host-c", "python", "train.py")
	folder, err = Opener{}.LookThrough(dir)
	if err != nil {
		t.Fatal(err)
	}
	if run, err := folder.OpenRank(snapshot.NoRank); err == nil {
		t.Errorf("%+v; want none of two commands", run)
	}
}
