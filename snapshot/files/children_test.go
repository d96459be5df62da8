package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// childrenRun is a run of a process, with snapshots of two others, and of how many there are.
func childrenRun(t *testing.T, followed bool) (dir string) {
	t.Helper()
	w, err := rundir.Create(t.TempDir(), snapshot.Info{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.Dir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		for name, role := range map[string]string{"": "", "_child1": "loader worker 0", "_child12": "loader worker 1"} {
			write(fmt.Sprintf("snapshot_t%d%s.json", n+9, name), fmt.Sprintf(`{"memdiag_agent":1,"producer":"Python","step":null,"rank":null,"time_us":%d,`+
				`"devices":[],"frames":[],"stacks":[[]],"blocks":{"device":[],"address":[],"size":[],"stack":[],"birth":[]},"role":"%s","pid":%d}`, 1000000*(n+1), role, 100+len(name)))
		}
	}
	write("processes.csv", processes.Header+"1000000,107,1,1,loader worker 0,false,1,1,1,1,1,1,1\n")
	write("host.csv", processes.HostHeader+"1000000,1,1,,,,,,,,,,,,,,\n")
	w.Took(0, nil, snapshot.Code{}, followed)
	if err := w.Finish(0, time.Unix(4, 0)); err != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

func TestChildrenAreReadBesideTheirRun(t *testing.T) {
	dir := childrenRun(t, true)
	run, err := OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Snapshots) != 3 || len(run.Notes) > 0 || len(run.Children) != 2 || run.Tree == nil || len(run.Tree.Processes) != 1 || len(run.Tree.Host) != 1 {
		t.Fatalf("%+v", run)
	}
	for i, want := range []string{"loader worker 0", "loader worker 1"} {
		c := run.Children[i]
		if c.Role != want || c.PID != 107+i || len(c.Snapshots) != 3 || !c.Snapshots[0].Mark.Time.Before(c.Snapshots[2].Mark.Time) {
			t.Errorf("%+v; want %s", c, want)
		}
	}
	if names := Names(dir); len(names) != 3 {
		t.Errorf("%q; want those of the run's own process", names)
	}
}

// TestAProcessHasOneRole: a leak in one that an agent and the system call by other names appeared twice.
func TestAProcessHasOneRole(t *testing.T) {
	for _, c := range []struct{ agent, system, want string }{
		{"train.py", "fork of train.py", "fork of train.py"},
		{"produce 1", "fork of train.py", "produce 1"},
		{"produce 1", "spawned python", "produce 1"},
		{"train.py", "train.py", "train.py"},
	} {
		at := func(seconds int64) snapshot.ProcessPoint { return snapshot.ProcessPoint{Time: time.Unix(seconds, 0)} }
		child := &snapshot.Run{Role: c.agent, PID: 7, Snapshots: []*snapshot.Snapshot{{Mark: snapshot.Mark{Time: time.Unix(50, 0)}}}}
		run := &snapshot.Run{Children: []*snapshot.Run{child}, Tree: &snapshot.Tree{Processes: []snapshot.TreeProcess{
			{PID: 7, Role: "perl", Points: []snapshot.ProcessPoint{at(1), at(9)}}, {PID: 7, Started: 4000, Role: c.system, Points: []snapshot.ProcessPoint{at(40), at(60)}},
		}}}
		nameAlike(run)
		if p := run.Tree.Processes; run.Children[0].Role != c.want || p[1].Role != c.want || p[0].Role != "perl" {
			t.Errorf("%s, %s: %q, %q", c.agent, c.system, run.Children[0].Role, p[1].Role)
		}
		if p := run.Tree.Processes; child.Is(&p[0]) || !child.Is(&p[1]) {
			t.Error("its snapshots are of another process that had its number before")
		}
	}
}

// Without run.json the children and the processes of a run were passed over without a word: what leaked in one passed the gate.
func TestARunWithoutItsInfoHasItsProcesses(t *testing.T) {
	for name, gone := range map[string][]string{
		"run.json":            {"run.json"},
		"run.json and tables": {"run.json", "processes.csv", "host.csv"},
		"run.json and children": {"run.json", "snapshot_t9_child1.json", "snapshot_t10_child1.json", "snapshot_t11_child1.json",
			"snapshot_t9_child12.json", "snapshot_t10_child12.json", "snapshot_t11_child12.json"},
	} {
		dir := childrenRun(t, true)
		for _, file := range gone {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		run, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Children) == 0 && run.Tree == nil || !run.Partial || !slices.Contains(run.Notes, filepath.Join(dir, "run.json")+": it is gone; what else the run has is read") {
			t.Errorf("without %s: %d children, %v, %q", name, len(run.Children), run.Tree, run.Notes)
		}
	}
}

func TestARunWhoseProcessesAreNotReadIsPartial(t *testing.T) {
	for _, c := range []struct {
		name, processes, host string // "" for no such file
		followed, want        bool
	}{
		{"missing", "", processes.HostHeader, false, true},
		{"empty", "\n", processes.HostHeader, false, true},
		{"without lines", processes.Header, processes.HostHeader, false, true},
		{"cut in a line", processes.Header + "1000000,107,1,1,a,false,1,1,1,1,1,1,1\n1000", processes.HostHeader, false, false},
		{"cut in a line, both", processes.Header + "1000000,107,1,1,a,false,1,1,1,1,1,1,1\n1000", processes.HostHeader + "1000000,1,1,,,,,,,,,,,,,,\n2", false, false},
		{"cut between lines", processes.Header + "1000000,107,1,1,a,false,1,1,1,1,1,1,1\n", processes.HostHeader + strings.Repeat("9000000,1,1,,,,,,,,,,,,,,\n", 9), false, true},
		{"of a process that was long in exiting", processes.Header + "1000000,107,1,1,a,false,1,1,1,1,1,1,1\n", processes.HostHeader + strings.Repeat("9000000,1,0,,,,,,,,,,,,,,\n", 9), false, false},
		{"of an older memdiag", "", "time_us,processes,rss_bytes,pss_bytes\n", false, false},
		{"of no Linux", "", "", false, false},
		{"missing, both", "", "", true, true},
	} {
		dir := childrenRun(t, c.followed)
		for name, text := range map[string]string{"processes.csv": c.processes, "host.csv": c.host} {
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run, err := OpenRun(dir)
		if err != nil || run.Partial != c.want || c.want != strings.Contains(strings.Join(run.Notes, "\n"), "processes were not read") {
			t.Errorf("%s: %+v, %v", c.name, run, err)
		}
	}
}

// TestTablesThatEndWithMemdiagAreSaid: it was killed, and the agent's snapshots go on.
func TestTablesThatEndWithMemdiagAreSaid(t *testing.T) {
	dir := childrenRun(t, true)
	w, err := rundir.Create(filepath.Join(t.TempDir(), "other"), snapshot.Info{Version: "v1"})
	if err == nil {
		err = os.Rename(filepath.Join(w.Dir(), rundir.InfoName), filepath.Join(dir, rundir.InfoName)) // of a run that has not finished
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "snapshot_t12.json"), []byte(`{"memdiag_agent":1,"producer":"Python","step":null,"rank":null,"time_us":60000000,`+
			`"devices":[],"frames":[],"stacks":[[]],"blocks":{"device":[],"address":[],"size":[],"stack":[],"birth":[]}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(dir)
	if err != nil || !run.Partial || !strings.Contains(strings.Join(run.Notes, "\n"), "it ends before the run does") {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAProcessThatTakesThePlaceOfAnotherHasItsNumber: a loader's workers of the next epoch, of which some ended before they had
// their names.
func TestAProcessThatTakesThePlaceOfAnotherHasItsNumber(t *testing.T) {
	run := &snapshot.Run{Tree: &snapshot.Tree{}}
	for n, role := range []string{"loader worker", "loader worker", "loader worker 0", "loader worker", "loader worker", "loader worker"} {
		epoch := int64(n / 2)
		p := snapshot.TreeProcess{PID: n, Started: int64(n), Role: role}
		for second := range int64(3) {
			p.Points = append(p.Points, snapshot.ProcessPoint{Time: time.Unix(10*epoch+second, 0)})
		}
		run.Tree.Processes = append(run.Tree.Processes, p)
	}
	numberAlike(run)
	var got []string
	for _, p := range run.Tree.Processes {
		got = append(got, strings.TrimPrefix(p.Role, "loader worker "))
	}
	if want := []string{"0", "1", "0", "1", "0", "1"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestManyProcessesOfOneRoleAreNumberedFast: each looked at all numbers from the first on, and at all that were named so.
func TestManyProcessesOfOneRoleAreNumberedFast(t *testing.T) {
	const many = 200_000
	run := func(named int, apart time.Duration) *snapshot.Run {
		r := &snapshot.Run{Tree: &snapshot.Tree{}}
		for n := range many {
			role := "w"
			if n < named {
				role = "w 1"
			}
			p := snapshot.TreeProcess{PID: n, Role: role}
			p.Points = []snapshot.ProcessPoint{{Time: time.Unix(1000, 0).Add(time.Duration(n) * apart)}}
			r.Tree.Processes = append(r.Tree.Processes, p)
		}
		numberAlike(r)
		return r
	}
	if got := run(0, 0).Tree.Processes[many-1].Role; got != "w" {
		t.Errorf("of too many at once one is called %q", got)
	}
	if got := run(many/2, time.Second).Tree.Processes[many-1].Role; got != "w 1" {
		t.Errorf("one after another is called %q", got)
	}
}

func TestWhatIsBrokenOfChildrenIsSaid(t *testing.T) {
	dir := childrenRun(t, true)
	for name, text := range map[string]string{"snapshot_t9_child1.json": `{"memdiag_agent":1,`, "processes.csv": processes.Header + "x\n", "host.csv": "time"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := OpenRun(dir)
	if err != nil || len(run.Snapshots) != 3 || len(run.Children) != 2 || len(run.Children[0].Snapshots) != 2 || len(run.Notes) < 2 || !run.Partial {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestProcessesOfOneRoleAreNumbered where several were there at once.
func TestProcessesOfOneRoleAreNumbered(t *testing.T) {
	began := time.Unix(1000, 0)
	run := &snapshot.Run{Tree: &snapshot.Tree{}}
	for i, p := range []struct {
		role     string
		from, to int
	}{
		{"train.py", 0, 9}, {"fork of train.py", 1, 9}, {"fork of train.py", 2, 9}, {"ray::Trainer", 1, 9}, {"ray::Trainer", 1, 9}, {"loader worker 0", 1, 9}, {"loader worker 0", 1, 9},
		{"true", 1, 2}, {"true", 3, 4}, {"fork of a.py of rank 0", 1, 3}, {"fork of a.py of rank 0", 3, 3}, {"rank 0", 1, 3}, {"rank 0", 1, 3},
	} {
		at := func(second int) snapshot.ProcessPoint {
			return snapshot.ProcessPoint{Time: began.Add(time.Duration(second) * time.Second)}
		}
		run.Tree.Processes = append(run.Tree.Processes, snapshot.TreeProcess{PID: 100 + i, Role: p.role, Points: []snapshot.ProcessPoint{at(p.from), at(p.to)}})
	}
	run.Children = []*snapshot.Run{{Role: "fork of train.py", PID: 102}}
	numberAlike(run)
	var got []string
	for _, p := range run.Tree.Processes {
		got = append(got, p.Role)
	}
	want := []string{
		"train.py", "fork 1 of train.py", "fork 2 of train.py", "ray::Trainer 1", "ray::Trainer 2", "loader worker 0", "loader worker 0",
		"true", "true", "fork 1 of a.py of rank 0", "fork 2 of a.py of rank 0", "rank 0", "rank 0",
	}
	if !slices.Equal(got, want) || run.Children[0].Role != "fork 2 of train.py" {
		t.Errorf("%q, and a child %q; want %q", got, run.Children[0].Role, want)
	}
}

// TestAProcessWithSnapshotsIsRecorded: on a nearly full disk the table ended first, and the program was said to grow unrecorded.
func TestAProcessWithSnapshotsIsRecorded(t *testing.T) {
	dir := childrenRun(t, true)
	text := processes.Header + "1000000,100,1,1,train.py,false,1,1,1,1,1,1,1\n1000000,107,1,100,other,false,1,1,1,1,1,1,1\n"
	if err := os.WriteFile(filepath.Join(dir, "processes.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(dir)
	if err != nil || len(run.Tree.Processes) != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	for _, p := range run.Tree.Processes {
		if got := p.Points[0].Recorded; got != (p.PID == 100) {
			t.Errorf("process %d: recorded: %v", p.PID, got)
		}
	}
}
