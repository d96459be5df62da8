package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

func TestTheLastReadableSnapshotOfARun(t *testing.T) {
	whole := func(t *testing.T, path string) {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}
		if err := errors.Join(native.Encode(f, s), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, broken := range map[string]string{"empty": "", "one byte": "x", "zeros": "\x00\x00\x00", "cut short": "\x89MDSNAP\n\x01\x00"} {
		for _, names := range [][]string{
			{"run.json", "snapshot_t9.memdiag", "snapshot_t10.memdiag", "snapshot_t11.memdiag"},
			{"dump_step9.memdiag", "dump_step10.memdiag", "dump_step11.memdiag"},
			{"b.memdiag", "c.memdiag"},
		} {
			dir, last := t.TempDir(), len(names)-1
			for _, name := range names[:last] {
				if name == "run.json" {
					if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
						t.Fatal(err)
					}
					continue
				}
				whole(t, filepath.Join(dir, name))
			}
			lost := filepath.Join(dir, names[last])
			if err := os.WriteFile(lost, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			s, path, err := Opener{}.OpenLast(dir)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if want := filepath.Join(dir, names[last-1]); path != want && path != "" {
				t.Errorf("%s: %s, want %s", name, path, want)
			}
			if len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], lost+": ") || !strings.HasSuffix(s.Notes[0], "; left out") {
				t.Errorf("%s: no note on %s: %q", name, lost, s.Notes)
			}
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"snapshot_1.memdiag", "snapshot_2.memdiag"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("\x89MDSNAP\n\x01\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := (Opener{}).OpenLast(dir); err == nil || !strings.Contains(err.Error(), "snapshot_2.memdiag: ") {
		t.Errorf("of a run without a readable snapshot: %v", err)
	}
}
