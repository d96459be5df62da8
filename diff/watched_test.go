package diff

import (
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAVerdictOnARunOfWhichTheRestWentUnseenIsNotStrong: it says so, and a run without a leak is in doubt.
func TestAVerdictOnARunOfWhichTheRestWentUnseenIsNotStrong(t *testing.T) {
	start := time.Unix(1000, 0)
	steps := func(at ...int64) []*snapshot.Snapshot {
		var all []*snapshot.Snapshot
		for _, step := range at {
			all = append(all, build(step, grown("x", int(step), 512, 0, 1)...))
		}
		return all
	}
	clock := func(at ...float64) []*snapshot.Snapshot {
		return clocked(at, func(x float64) int { return int(100 * x) }).Snapshots
	}
	for _, c := range []struct {
		name      string
		snapshots []*snapshot.Snapshot
		steps     int64
		seconds   float64
		every     int64
		says      string
	}{
		{"to the end", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 100, 0, 0, ""},
		{"but for the last fifth, as the recorder may leave it", steps(0, 10, 20, 30, 40, 50, 60, 70, 80), 100, 0, 0, ""},
		{"a third of the steps", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 300, 0, 0, "no snapshot was taken after step 100 of 300 (record with --every 15)"},
		{"one for the last half of the steps", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 160), 160, 0, 0, "no snapshot was taken between step 80 and the last one, of step 160 (record with --every 8)"},
		{"snapshots as far apart as was asked for", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 160), 160, 0, 80, ""},
		{"the steps ceased early", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 100, 300, 0, "no step and no snapshot came in the last 3 minutes of 5 minutes, after step 100"},
		{"no snapshot of the last steps, which took long", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 110, 300, 0, "no snapshot came in the last 3 minutes of 5 minutes, after step 100"},
		{"… where snapshots as far apart were asked for", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 100, 300, 10, "in the last 3 minutes of 5 minutes"},
		{"a short evaluation at the end", steps(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100), 100, 140, 0, ""},
		{"a short run takes some seconds to end", steps(1, 2, 3, 4, 5, 6), 6, 9.5, 0, ""},
		{"by the clock, to the end", clock(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0, 10.5, 0, ""},
		{"by the clock, a third of the time", clock(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0, 30, 0, "no snapshot was taken in the last 20 s of a run of 30 s"},
		{"by the clock, one for the last half", clock(1, 2, 3, 4, 5, 6, 7, 8, 9, 20), 0, 20, 0, "no snapshot was taken in the 11 s before the last one"},
		{"the clock was set", clock(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0, 3, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			finished, code := start.Add(time.Duration(c.seconds*float64(time.Second))), 0
			run := runOf(c.snapshots...)
			run.Info = snapshot.Info{Command: []string{"python", "train.py"}, Steps: c.steps, Every: c.every, Started: start, Finished: &finished, ExitCode: &code}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			if f.Verdict != Leak {
				t.Fatalf("%s: %v", f.Verdict, f.Reasons)
			}
			notes, doubt := strings.Join(append(r.Notes, r.NotSeen...), "; "), r.Doubt(nil)
			if c.says == "" {
				if f.Evidence != Strong || strings.Contains(notes, "seen") || strings.Contains(notes, "watched") || doubt != "" {
					t.Errorf("evidence %s, notes %q, doubt %q; want none", f.Evidence, notes, doubt)
				}
				return
			}
			if f.Evidence != Weak || !strings.Contains(f.Reasons[len(f.Reasons)-1], c.says) || !strings.Contains(notes, c.says) || !strings.Contains(doubt, c.says) {
				t.Errorf("evidence %s, reasons %q, notes %q, doubt %q; want %q", f.Evidence, f.Reasons, notes, doubt, c.says)
			}
		})
	}
}

func TestAProgramThatHardlyHadAProcessorPassesNoGate(t *testing.T) {
	for _, c := range []struct {
		name   string
		apart  float64 // seconds
		waited float64 // the part of them for which it waited for a processor
		says   string
	}{
		{"in six seconds it worked for a third of one", 0.5, 0.95, "waited for a processor for 95 % of the time"},
		{"an idle machine", 0.5, 0.05, ""},
		{"ten minutes of a busy one", 50, 0.95, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := make([]float64, 13)
			for i := range at {
				at[i] = c.apart * float64(i)
			}
			run := clocked(at, func(float64) int { return 1 })
			for i, s := range run.Snapshots {
				s.Waited = time.Duration((4 + c.waited*at[i]) * float64(time.Second))
			}
			end, code := run.Snapshots[12].Mark.Time.Add(time.Second/2), 0
			run.Info = snapshot.Info{Command: []string{"python", "serve.py"}, Started: time.Unix(1000, 0), Finished: &end, ExitCode: &code}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if doubt := r.Doubt(nil); (doubt != "") != (c.says != "") || !strings.Contains(doubt, c.says) {
				t.Errorf("%q, want %q", doubt, c.says)
			}
		})
	}
}

func TestMemoryThatIsFreeAtTheLastSnapshotIsInDoubt(t *testing.T) {
	held := func(x float64) int { return int(100 * x) }
	for name, c := range map[string]struct {
		held  func(x float64) int
		doubt bool
	}{
		"the function has returned":  {func(x float64) int { return held(x) * min(1, int(10-x)) }, true},
		"… some snapshots ago":       {func(x float64) int { return held(x) * min(1, max(0, int(9.5-x))) }, true},
		"in the middle of the run":   {func(x float64) int { return held(x) * min(1, max(0, int(7.5-x))) }, false},
		"a list for each of epochs":  {func(x float64) int { return int(100*x) % 250 }, false},
		"memory that falls steadily": {func(x float64) int { return 2000 - held(x)*min(1, int(10-x)) }, false},
	} {
		r, err := Analyze(clocked([]float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10}, c.held), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(r.Doubt(nil), "may have returned"); got != c.doubt || r.Leaks() > 0 {
			t.Errorf("%s: %q, %d leaks", name, r.Doubt(nil), r.Leaks())
		}
	}
}

// TestARunThatKeepsNothingPasses: the recorder would have shown what stays of a device that it watches.
func TestARunThatKeepsNothingPasses(t *testing.T) {
	for _, c := range []struct {
		name      string
		kind      snapshot.DeviceKind
		allocated snapshot.Bytes
		want      string
	}{
		{"Python's heap did not grow", snapshot.PythonHeap, 0, ""},
		{"it did, and no block is known", snapshot.PythonHeap, 1 << 20, "no snapshot holds a live block"},
		{"no tensor was kept", snapshot.CPU, 0, ""},
		{"nobody watches the GPU's allocations", snapshot.CUDA, 0, "no snapshot holds a live block"},
	} {
		var snapshots []*snapshot.Snapshot
		for step := range int64(20) {
			snapshots = append(snapshots, &snapshot.Snapshot{
				Mark: snapshot.Mark{Step: 10 * step, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks(),
				Devices: []snapshot.Device{
					{Kind: snapshot.Process, Limit: snapshot.Unknown}, {Kind: c.kind, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: c.allocated}},
					{Kind: snapshot.Items, Limit: snapshot.Unknown}, // a container that is followed
				},
			})
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Doubt(nil); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWhatOtherProcessesDoAfterTheLastStepIsNotUnseen: a script trains, and another program evaluates then.
func TestWhatOtherProcessesDoAfterTheLastStepIsNotUnseen(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }
	points := func(from, to int64) []snapshot.ProcessPoint {
		return []snapshot.ProcessPoint{{Time: at(from)}, {Time: at(to)}}
	}
	for _, c := range []struct {
		name        string
		began, ends int64 // the recorded process, which steps up to 100 s
		role        string
		says        string
	}{
		{"another goes on", 0, 104, "", ""},
		{"it goes on itself", 0, 300, "", "in the last 3 minutes of 5 minutes"},
		{"it began late", 90, 120, "", "in the last 20 s of 30 s"},
		{"a child that is in no table", 0, 50, "loader worker 1", ""},
	} {
		var all []*snapshot.Snapshot
		for _, step := range []int64{90, 92, 94, 96, 98, 100} {
			s := build(step, grown("x", 1, 512, 0, 1)...)
			s.PID = 7
			all = append(all, s)
		}
		run, finished := runOf(all...), at(300)
		run.Role = c.role
		run.Info = snapshot.Info{Command: []string{"sh", "train.sh"}, Steps: 100, Started: at(0), Finished: &finished}
		run.Tree = &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: 1, Points: points(0, 300)}, {PID: 7, Points: points(c.began, c.ends)}}}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if doubt := r.Doubt(nil); (doubt != "") != (c.says != "") || !strings.Contains(doubt, c.says) {
			t.Errorf("%s: %q, want %q", c.name, doubt, c.says)
		}
	}
}
