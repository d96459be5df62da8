package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// A training that forked hundreds of processes had a line of each.
func TestWhatManyProcessesSayIsOneNote(t *testing.T) {
	dir := t.TempDir()
	for pid := range 300 {
		notes := `"all say this"`
		if pid < 2 {
			notes += `, "two say this"`
		}
		report := fmt.Sprintf(`{"pid": %d, "notes": [%s]}`, pid, notes)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(".agent_%d.json", pid)), []byte(report), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	o.collect(dir, snapshot.NoRank)
	if want := []string{"300 processes: all say this", "process 0: two say this", "process 1: two say this"}; !slices.Equal(o.Notes, want) {
		t.Errorf("%q", o.Notes)
	}
}

// TestPackagesAreKnownOnceTheProgramHasSaidThem: a killed program was taken for one that had imported none.
func TestPackagesAreKnownOnceTheProgramHasSaidThem(t *testing.T) {
	for _, c := range []struct {
		main, child string
		want        map[string]string
	}{
		{`, "packages": {"cupy": "13"}`, `, "packages": {"rich": "14"}`, map[string]string{"cupy": "13", "rich": "14"}},
		{`, "packages": {}`, ``, map[string]string{}},
		{``, `, "packages": {"rich": "14"}`, nil},
	} {
		dir := t.TempDir()
		for pid, report := range []string{c.main, c.child + `, "child": true`} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(".agent_%d.json", pid)), []byte(`{"state": "finished"`+report+"}"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var o Outcome
		o.collect(dir, snapshot.NoRank)
		text, err := json.Marshal(snapshot.Info{Packages: o.Packages})
		var read snapshot.Info
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil || (read.Packages == nil) != (c.want == nil) || !maps.Equal(read.Packages, c.want) {
			t.Errorf("%s, %s: %v, %v; want %v", c.main, c.child, read.Packages, err, c.want)
		}
	}
}

// The closing line says at which step the last snapshot is; children and what was taken by the clock have none.
func TestTheLastSnapshotsStepIsCounted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"snapshot_9.json", "snapshot_104.json", "snapshot_20.json", "snapshot_t900.json", "snapshot_500_child2.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	o.collect(dir, snapshot.NoRank)
	if o.LastStep != 104 || o.Snapshots != 5 {
		t.Errorf("the last of %d snapshots is at step %d", o.Snapshots, o.LastStep)
	}
}

// A program that was killed reported its steps at the fifth snapshot for the last time.
func TestAKilledProgramTookTheStepsThatItsSnapshotsShow(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"snapshot_505.json": "{}", ".agent_7.json": `{"pid": 7, "state": "recorded", "recorded": true, "steps": 5}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	o.collect(dir, snapshot.NoRank)
	if o.Steps != 505 {
		t.Errorf("%d steps", o.Steps)
	}
}

func TestOldAgentsOfKilledMemdiagsAreSweptAway(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc here")
	}
	temporary := filepath.Join(t.TempDir(), "[tmp") // which is no pattern
	folder := func(name string, age time.Duration) string {
		path := filepath.Join(temporary, name)
		if err := os.MkdirAll(filepath.Join(path, "memdiag"), 0o777); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		return path
	}
	folder("memdiag-agent-1", 8*24*time.Hour)
	used := folder("memdiag-agent-2", 8*24*time.Hour)
	folder("memdiag-agent-3", 24*time.Hour)
	folder("another", 8*24*time.Hour)
	running := exec.Command("sleep", "600")
	running.Env = []string{"PYTHONPATH=" + used + ":/mine"}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = running.Process.Kill(), running.Wait() }() // it has no more to do
	sweep(temporary)
	entries, err := os.ReadDir(temporary)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"another", "memdiag-agent-2", "memdiag-agent-3"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%q, %v", left, err)
	}
}

// With --force, files of the user may lie beside the run's.
func TestWhatARecordingLeavesBehindIsTakenAwayAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".claim_tick", ".snapshot_3.json.tmp", "..agent_7.json.tmp", "snapshot_1.json", "snapshot_t2.pb.gz",
		".mine.tmp", ".claim_of_mine", "snapshot_1.py", "snapshot_notes.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	o.collect(dir, snapshot.NoRank)
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".claim_of_mine", ".mine.tmp", "snapshot_1.json", "snapshot_1.py", "snapshot_notes.csv", "snapshot_t2.pb.gz"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%q, %v", left, err)
	}
	if o.Snapshots != 2 {
		t.Errorf("%d snapshots are counted", o.Snapshots)
	}
}
