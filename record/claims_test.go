package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// TestAClaimIsOfOneProcess: another one that has its number since is not recorded.
func TestAClaimIsOfOneProcess(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{".claim_tick": "7 100 0\n", ".claim_step_rank0": "8 200 0\n", ".claim_step_rank1": "9", ".claim_tick_child1": "10 300 5\n", ".claim_step_rank2": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := claimants(dir)
	for _, c := range []struct {
		pid            int
		started        int64
		steps, records bool
	}{
		{7, 100, false, false}, // ranks have taken over
		{8, 200, true, true}, {8, 201, false, false}, {8, 0, true, true},
		{9, 5, true, true}, // of an agent that did not know
		{10, 300, false, false},
	} {
		if steps, records := found.of(c.pid, c.started); steps != c.steps || records != c.records {
			t.Errorf("process %d of %d: %v, %v", c.pid, c.started, steps, records)
		}
	}
}

// TestAChildsClaimTakesNoSnapshotsBack: a run had none if only a child of its program could be recorded.
func TestAChildsClaimTakesNoSnapshotsBack(t *testing.T) {
	out, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{dir: out.Dir(), snapshots: newClock(out, 0, hostSnapshotEvery)}
	for _, c := range []struct {
		claim string
		kept  bool
	}{{".claim_tick_child1", true}, {".claim_tick", false}} {
		if err := os.WriteFile(filepath.Join(out.Dir(), c.claim), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.claims.due = time.Time{}
		if h.giveWay(); (h.snapshots != nil) != c.kept {
			t.Errorf("%s: kept %v", c.claim, h.snapshots != nil)
		}
	}
}

// TestTheEndListsClaims: a short command ends before they are due again where a folder is slow.
func TestTheEndListsClaims(t *testing.T) {
	out, err := rundir.Create(filepath.Join(t.TempDir(), "run"), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out.Dir(), ".claim_tick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &host{dir: out.Dir(), tree: newTree(os.Getpid(), ""), snapshots: newClock(out, 0, hostSnapshotEvery), cancel: func() {}}
	h.claims.due = time.Now().Add(time.Hour)
	if h.stop(); h.snapshots != nil {
		t.Error("the host's snapshots stay beside the agent's")
	}
}

// TestTheFirstClaimIsFoundSoon where one listing takes a second.
func TestTheFirstClaimIsFoundSoon(t *testing.T) {
	for found, want := range map[bool]time.Duration{false: firstClaim, true: listShare * time.Second} {
		if l := (&claimList{any: found}); l.rest(time.Second) != want {
			t.Errorf("found one: %v; listed again after %v", found, l.rest(time.Second))
		}
	}
}

// TestClaimsAreListedInAFiftiethOfTheTime: the folder of a thousand ranks is listed for each of them.
func TestClaimsAreListedInAFiftiethOfTheTime(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".claim_tick_rank0", "7 100 0\n")
	var l claimList
	begun := time.Now()
	l.look(dir)
	if took := time.Since(begun); l.due.Sub(begun) <= 0 || l.due.Sub(begun) > (listShare+1)*took {
		t.Errorf("listed in %v, and again after %v", took, l.due.Sub(begun))
	}
	write(".claim_step_rank0", "8 200 0\n")
	l.due = time.Now().Add(time.Hour)
	if l.look(dir); len(l.claims[8]) != 0 || len(l.claims[7]) != 1 {
		t.Errorf("%v", l.claims)
	}
	l.due = time.Time{}
	l.look(dir)
	write(".claim_step_rank0", "9 300 0\n") // which is known
	l.due = time.Time{}
	if l.look(dir); len(l.claims[8]) != 1 || len(l.claims[7]) != 0 || len(l.claims[9]) != 0 {
		t.Errorf("%v", l.claims)
	}
}
