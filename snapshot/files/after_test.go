package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// TestWhatAProcessDidAfterItsLastStepIsReadBesideItsSteps: each rank's own, and none of a pause after which it stepped again.
func TestWhatAProcessDidAfterItsLastStepIsReadBesideItsSteps(t *testing.T) {
	w, err := rundir.Create(t.TempDir(), snapshot.Info{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.Dir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for rank := range 3 {
		for i, name := range []string{"1", "2", "4", "t9_after4", "t10_after4", "t11_after4", "t1_after2"} {
			if rank == 2 && name < "4" {
				continue // of one step
			}
			step := name
			if i > 2 {
				step = "null"
			}
			write(fmt.Sprintf("snapshot_%s_rank%d.json", name, rank), fmt.Sprintf(`{"memdiag_agent":1,"producer":"Python","step":%s,"rank":%d,"time_us":%d,`+
				`"devices":[],"frames":[],"stacks":[[]],"blocks":{"device":[],"address":[],"size":[],"stack":[],"birth":[]},"role":"train.py of rank %[2]d","pid":%[4]d}`, step, rank, 1000000*(i+1), 100+rank))
		}
	}
	write("processes.csv", processes.Header+"1000000,100,7,1,train.py,false,1,1,1,1,1,1,1\n9000000,100,7,1,train.py,false,1,1,1,1,1,1,1\n")
	write("host.csv", processes.HostHeader+"1000000,1,1,,,,,,,,,,,,,,\n")
	w.Took(4, nil, snapshot.Code{}, true)
	if err := w.Finish(0, time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	f, err := Opener{}.LookThrough(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for rank, started := range []int64{7, 0} {
		run, err := f.OpenRank(rank)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Snapshots) != 3 || len(run.Children) != 1 {
			t.Fatalf("rank %d: %d snapshots, %d children", rank, len(run.Snapshots), len(run.Children))
		}
		c := run.Children[0]
		if want := fmt.Sprintf("train.py after step 4 of rank %d", rank); c.Role != want || c.AfterStep != 4 || c.PID != 100+rank || c.Started != started {
			t.Errorf("%q after step %d, process %d of %d; want %q", c.Role, c.AfterStep, c.PID, c.Started, want)
		}
		if len(c.Snapshots) != 3 || c.Snapshots[0].Mark.Time != time.Unix(4, 0).UTC() || c.Snapshots[2].Mark.Time != time.Unix(6, 0).UTC() || c.Snapshots[0].Mark.Step != snapshot.NoStep {
			t.Errorf("%d snapshots, the first at %v", len(c.Snapshots), c.Snapshots[0].Mark)
		}
		if rank == 0 && run.Tree.Processes[0].Role != "train.py" {
			t.Errorf("the process itself is called %q", run.Tree.Processes[0].Role)
		}
	}
	run, err := f.OpenRank(2)
	if err != nil || len(run.Children) != 0 || len(run.Snapshots) != 3 || run.Snapshots[0].Mark.Step != snapshot.NoStep || !strings.Contains(strings.Join(run.Notes, "; "), "too few snapshots are of steps to judge them (1): what came after step 4") {
		t.Errorf("after one step: %d snapshots, %d children, notes %q, %v", len(run.Snapshots), len(run.Children), run.Notes, err)
	}
}
