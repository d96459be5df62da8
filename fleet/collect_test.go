package fleet

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestARunThatFailedRanOutOfMemoryOnlyIfSomethingSaysSo(t *testing.T) {
	killed := []string{snapshot.KernelKilled + "the machine had no memory left"}
	for name, c := range map[string]struct {
		code  int
		notes []string
		ooms  int64
		want  string
	}{
		"a bug":                            {1, nil, 0, "failed"},
		"somebody's signal":                {137, []string{"another process sent the signal that killed it"}, 0, "killed"},
		"the kernel":                       {137, killed, 0, OutOfMemory},
		"the device":                       {1, nil, 1, OutOfMemory},
		"an error that the program caught": {0, nil, 1, "ended"},
	} {
		run := &snapshot.Run{Path: "/run", Info: snapshot.Info{Started: epoch, Finished: new(time.Time), ExitCode: &c.code, Notes: c.notes}}
		collector := NewCollector(run, About{})
		collector.ranOut = ranOut(run, &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA, OutOfMemory: c.ooms}}})
		if got := collector.Tables()["runs"].Columns[6].Texts[0]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestADoubtedRankIsInconclusive: it was clean beside a sentence that said "inconclusive".
func TestADoubtedRankIsInconclusive(t *testing.T) {
	stacks := snapshot.NewStacks()
	run := &snapshot.Run{}
	for step := range int64(6) {
		run.Snapshots = append(run.Snapshots, &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: 10 * step, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: stacks,
			Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}}, Segments: []snapshot.Segment{{NumBlocks: 1}},
			Blocks: snapshot.Blocks{
				Segment: []int32{0}, Address: []uint64{4096}, Size: []snapshot.Bytes{4096}, Requested: []snapshot.Bytes{4096},
				State: []snapshot.State{snapshot.Live}, BirthStep: []int64{0},
				Stack: []snapshot.StackID{stacks.InternFrames([]snapshot.Frame{{Function: "f", File: "a.py", Line: 1}})},
			},
		})
	}
	failed, ended := 1, epoch.Add(time.Minute)
	for name, c := range map[string]struct {
		info snapshot.Info
		want diff.Verdict
	}{
		"a run that ended well": {snapshot.Info{Started: epoch, Finished: &ended}, diff.Clean},
		"one that goes on":      {snapshot.Info{Started: epoch}, diff.Inconclusive},
		"one that failed":       {snapshot.Info{Started: epoch, Finished: &ended, ExitCode: &failed}, diff.Inconclusive},
	} {
		run.Info = c.info
		r, err := diff.Analyze(run, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdictOf(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestARunIsKnownByItsContent(t *testing.T) {
	taken := func(step int64, sizes ...snapshot.Bytes) *snapshot.Snapshot {
		return &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Producer: "p", Blocks: snapshot.Blocks{Size: sizes}}
	}
	run := func(path string, snapshots ...*snapshot.Snapshot) string {
		return IDOf(&snapshot.Run{Path: path, Snapshots: snapshots})
	}
	first := run("/a/run", taken(0, 1, 2), taken(10, 1, 3))
	for name, id := range map[string]string{
		"a copy":              run("/b/copy", taken(0, 1, 2), taken(10, 1, 3)),
		"when it has gone on": run("/a/run", taken(0, 1, 2), taken(10, 1, 3), taken(20, 1, 4)),
	} {
		if id != first {
			t.Errorf("%s is another run", name)
		}
	}
	for name, id := range map[string]string{
		"another with the same begin":  run("/a/run", taken(0, 1, 2), taken(10, 1, 4)),
		"another in the same folder":   run("/a/run", taken(0, 5, 2), taken(10, 1, 3)),
		"one whose middle is another":  run("/a/run", taken(0, 1, 7, 2), taken(10, 1, 3)),
		"the same sizes at other step": run("/a/run", taken(0, 1, 2), taken(11, 1, 3)),
	} {
		if id == first {
			t.Errorf("%s is the same run", name)
		}
	}
	begun := func(path string) string {
		return IDOf(&snapshot.Run{Path: path, Info: snapshot.Info{Started: epoch, Command: []string{"a"}}})
	}
	if begun("/a") != begun("/b") {
		t.Error("a copy of a run that was recorded is another run")
	}
}
