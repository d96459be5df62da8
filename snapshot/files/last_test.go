package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

func TestTheLastSnapshotOfARun(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string // in the order in which they are taken
		want  string
	}{
		{"steps by number", []string{"run.json", "snapshot_9.memdiag", "snapshot_100.memdiag", "snapshot_20.memdiag"}, "snapshot_100.memdiag"},
		{"the lowest rank", []string{"run.json", "snapshot_9_rank1.memdiag", "snapshot_20_rank1.memdiag", "snapshot_9_rank0.memdiag", "snapshot_10_rank0.memdiag"}, "snapshot_10_rank0.memdiag"},
		{"by the clock", []string{"run.json", "snapshot_t9.memdiag", "snapshot_t10.memdiag"}, "snapshot_t10.memdiag"},
		{"steps of another tool", []string{"dump_step5.memdiag", "dump_step40.memdiag"}, "dump_step40.memdiag"},
		{"no run, by the time in the files", []string{"b.memdiag", "c.memdiag", "a.memdiag"}, ""},
	} {
		dir := t.TempDir()
		for i, name := range c.files {
			s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: time.Unix(int64(i)+1, 0)}, Rank: snapshot.NoRank, Producer: name, Stacks: snapshot.NewStacks()}
			f, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == "run.json" {
				_, err = f.WriteString(`{"version": "v1"}`)
			} else {
				err = native.Encode(f, s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, path, err := Opener{}.OpenLast(dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := c.want
		if want == "" {
			want = c.files[len(c.files)-1]
		} else if path != filepath.Join(dir, want) {
			t.Errorf("%s: %s, want %s", c.name, path, want)
		}
		if s.Producer != want {
			t.Errorf("%s: %s was read, want %s", c.name, s.Producer, want)
		}
	}
	if _, _, err := (Opener{}).OpenLast(t.TempDir()); err == nil {
		t.Error("an empty folder has a last snapshot")
	}
}
