package diff

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func TestSnapshotsOfDifferentProcessesShowNoLeak(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(*snapshot.Snapshot)
		says  string // "" where they are of one process
	}{
		{"the same process", func(*snapshot.Snapshot) {}, ""},
		{"another producer", func(s *snapshot.Snapshot) { s.Producer = "PyTorch" }, "different producers (test and PyTorch)"},
		{"another rank", func(s *snapshot.Snapshot) { s.Rank = 3 }, "different ranks (1 and 3)"},
		{"a file that tells no rank", func(s *snapshot.Snapshot) { s.Rank = snapshot.NoRank }, ""},
		{"another device", func(s *snapshot.Snapshot) { s.Devices[0].Kind = snapshot.CUDA }, "share no device (cpu:0 and cuda:0)"},
		{"another device of a machine whose devices are all listed", func(s *snapshot.Snapshot) {
			idle := s.Devices[0]
			idle.Meters = snapshot.Meters{}
			s.Devices[0].Index = 1
			s.Devices = append(s.Devices, idle)
		}, "share no device (cpu:0 and cpu:1)"},
		{"compiled programs alone, as JAX has them before it uses a device", func(s *snapshot.Snapshot) { s.Devices[0].Kind = snapshot.Executable }, ""},
		{"another machine's device", func(s *snapshot.Snapshot) { s.Devices[0].Name = "H200" }, "cpu:0 is A100 in one and H200 in the other"},
		{"no segment in common", func(s *snapshot.Snapshot) { s.Segments[0].Address = 0x9000 }, "share no memory segment"},
		{"another program at the same addresses", func(s *snapshot.Snapshot) {
			s.Stacks = snapshot.NewStacks()
			id := s.Stacks.InternFrames([]snapshot.Frame{{Function: "loop", File: "/home/b/serve.py", Line: 9}})
			for i := range s.Blocks.Stack {
				s.Blocks.Stack[i] = id
			}
		}, "their stacks share no file (w.py and /home/b/serve.py)"},
		{"a part of its record that begins behind the other's end", func(s *snapshot.Snapshot) {
			s.History = snapshot.History{Process: "7", First: time.Unix(30, 0), Last: time.Unix(40, 0)}
		}, "the recordings do not overlap"},
		{"a part of its record that begins with the other", func(s *snapshot.Snapshot) {
			s.History = snapshot.History{Process: "7", First: time.Unix(10, 0), Last: time.Unix(40, 0)}
		}, ""},
		{"the record of another process", func(s *snapshot.Snapshot) {
			s.History = snapshot.History{Process: "8", First: time.Unix(30, 0), Last: time.Unix(40, 0)}
		}, ""},
		{"no addresses at all", func(s *snapshot.Snapshot) { s.Segments[0].Address = 0 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runOf(build(0, grown("w", 1, 512, snapshot.NoStep, 0)...), build(50, append(grown("w", 1, 512, snapshot.NoStep, 0), grown("keep", 50, 512, 0, 1)...)...))
			for _, s := range run.Snapshots {
				s.Rank, s.Devices[0].Name = 1, "A100"
				s.History = snapshot.History{Process: "7", First: time.Unix(10, 0), Last: time.Unix(20, 0)}
			}
			c.other(run.Snapshots[1])
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if c.says == "" {
				if f.Verdict != Leak || !r.Comparable {
					t.Fatalf("got %s: %v; want a leak", f.Verdict, f.Reasons)
				}
				return
			}
			if f.More != (More{}) {
				t.Errorf("%+v more is said to decide what is of another process", f.More)
			}
			if f.Rate != (Rate{}) || f.Cause != nil {
				t.Errorf("rate %+v and cause %+v of what has not grown", f.Rate, f.Cause)
			}
			if r.Leaks() > 0 || r.Comparable || !strings.Contains(strings.Join(r.Notes, "; "), c.says) || !strings.Contains(strings.Join(f.Reasons, "; "), c.says) {
				t.Errorf("got %s, comparable %t: %v; notes %q; want both to say %q", f.Verdict, r.Comparable, f.Reasons, r.Notes, c.says)
			}
		})
	}
}

func TestMarksThatDoNotAddUpAreSaid(t *testing.T) {
	steps := func(at ...int64) *snapshot.Run {
		run := &snapshot.Run{}
		for i, step := range at {
			s := build(max(step, 0), grown("w", i+1, 512, 0, 1)...)
			s.Mark.Step, s.Mark.Time = step, time.Unix(1000+10*int64(i), 0)
			run.Snapshots = append(run.Snapshots, s)
		}
		return run
	}
	back := steps(0, 10, 20, 30)
	back.Snapshots[2].Mark.Time = time.Unix(500, 0)
	empty := steps(0, 10, 20)
	empty.Snapshots[2].Blocks.Size[0] = 0
	ahead := steps(snapshot.NoStep, snapshot.NoStep, snapshot.NoStep, snapshot.NoStep, snapshot.NoStep)
	for _, s := range ahead.Snapshots[3:] {
		s.Mark.Time = s.Mark.Time.AddDate(20, 0, 0)
	}
	full := steps(0, 10, 20)
	full.Snapshots[2].Devices[0].Limit = 1000
	for _, c := range []struct {
		name string
		run  *snapshot.Run
		says string // "" for nothing
	}{
		{"more than the device has", full, "cpu:0 holds 1.50 KiB, more than its limit of 1000 B"},
		{"all of one step", steps(20, 20, 20), "two snapshots are of step 20"},
		{"steps in their order", steps(0, 10, 20), ""},
		{"a step that is missing", steps(0, 10, 40), ""},
		{"steps missing from a regular series", steps(0, 10, 20, 70, 80), "there is no snapshot between steps 20 and 70, while most are 10 apart"},
		{"one step counted otherwise than the others", steps(0, 10, 20, 30, 1e9), "steps 30 and 1000000000 are 999,999,970 apart, others 10"},
		{"steps further and further apart", steps(0, 10, 100, 1000, 10000), ""},
		{"many of one step", steps(10, 20, 20, 20, 20, 30), "two snapshots are of step 20"},
		{"two of one step among several", steps(0, 10, 10, 20), "two snapshots are of step 10"},
		{"two of one step alone", steps(10, 10), "both snapshots are of step 10: there is no rate per step"},
		{"one without a step", steps(0, snapshot.NoStep, 20), "1 of 3 snapshots have no step"},
		{"none with a step", steps(snapshot.NoStep, snapshot.NoStep, snapshot.NoStep), ""},
		{"a clock that was put ahead", ahead, "7,305 days passed between snapshots 3 and 4; the usual interval is 10s"},
		{"a clock that was put back", back, "the clock was set back between steps 10 and 20"},
		{"a block of no size", empty, "live blocks without a size in the last snapshot: 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(c.run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if c.says == "" && len(r.Notes) > 0 || c.says != "" && !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, c.says) }) || len(r.Notes) > 1 {
				t.Errorf("notes %q; want %q", r.Notes, c.says)
			}
		})
	}
}

// restartedAt is a run with a snapshot each 10 steps that keeps a block of each, resumed
// after a step in another process, which keeps them as well.
func restartedAt(last, restart int64) *snapshot.Run {
	var run snapshot.Run
	for step := int64(0); step <= last; step += 10 {
		since, base := int64(0), uint64(0)
		if step > restart {
			since, base = restart, 0x7e12_0000_0000
		}
		s := build(step, append(grown("w", 1, 512, snapshot.NoStep, 0), grown("keep", int(step-since), 512, since, 1)...)...)
		for i := range s.Blocks.Address {
			s.Blocks.Address[i] += base
		}
		s.Segments[0].Address += base
		run.Snapshots = append(run.Snapshots, s)
	}
	return &run
}

// A training that is resumed begins with a heap of its own: what filled up and fell there
// has neither stopped nor gone on.
func TestNothingIsBoundedAcrossARestart(t *testing.T) {
	r, err := Analyze(restartedAt(100, 50), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Comparable || r.Count(Inconclusive) != len(r.Findings) || len(r.Findings) == 0 {
		t.Errorf("got %+v, comparable %t; want nothing but inconclusive findings", r.Findings, r.Comparable)
	}
	if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, "the process changes between steps 50 and 60") {
		t.Errorf("the notes do not tell where to part the run: %s", notes)
	}
	if l := r.Least(); l.Every != 0 {
		t.Errorf("one block every %.0f steps is said to be shown by two processes", l.Every)
	}
}

func TestALongPartBehindARestartIsJudgedByItself(t *testing.T) {
	run := restartedAt(150, 50)
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Comparable || r.Leaks() != 1 || r.First.Mark.Step != 60 || len(run.Snapshots) != 16 {
		t.Errorf("from step %d, comparable %t: %+v", r.First.Mark.Step, r.Comparable, r.Findings)
	}
	if rate := r.Findings[0].Rate.Blocks.Value; rate != 1 {
		t.Errorf("%g blocks a step; want 1", rate)
	}
	if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, "the process changes between steps 50 and 60, as when training is resumed; the later part is judged alone") {
		t.Errorf("the notes do not tell it: %s", notes)
	}
}

func TestSeveralSnapshotsOfTwoProcessesSayWhich(t *testing.T) {
	r, err := Analyze(restartedAt(100, 50), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if want := "snapshots 6 and 7 of 11 seem to be of different processes: they share no memory segment"; !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
		t.Errorf("notes %q; want %q", r.Notes, want)
	}
}

// Two files of one mark whose meters differ are no equal ones, nor are those of different
// processes.
func TestOnlyWhatShowsTheSameIsEqual(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(*snapshot.Snapshot)
		equal bool
	}{
		{"itself", func(*snapshot.Snapshot) {}, true},
		{"more is reserved", func(s *snapshot.Snapshot) { s.Devices[0].Meters.Reserved += 1 << 20 }, false},
		{"another process", func(s *snapshot.Snapshot) { s.Segments[0].Address = 0x9000 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runOf(build(7, grown("w", 1, 512, snapshot.NoStep, 0)...), build(7, grown("w", 1, 512, snapshot.NoStep, 0)...))
			c.other(run.Snapshots[1])
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(strings.Join(r.Notes, "; "), "are equal"); r.Equal() != c.equal || said != c.equal {
				t.Errorf("equal %t, said %t: %q; want %t", r.Equal(), said, r.Notes, c.equal)
			}
		})
	}
}

// A program that is recorded anew with more steps has no births before the other's end.
func TestBirthsInAnotherProcessAreNotHeldAgainstThisOnesClock(t *testing.T) {
	for process, want := range map[string]Verdict{"7": Bounded, "8": Inconclusive} {
		run := runOf(build(2, grown("keep", 2, 512, snapshot.NoStep, 0)...), build(6, grown("keep", 6, 512, snapshot.NoStep, 0)...))
		for i, s := range run.Snapshots {
			s.Blocks.BirthStep = nil
			s.Blocks.BirthTime = make([]int64, s.Blocks.Len())
			for row := range s.Blocks.BirthTime {
				s.Blocks.BirthTime[row] = int64(1_000_000*(1+10*i) + row)
			}
			s.History = snapshot.History{Process: "7", First: time.UnixMicro(1_000_000), Last: time.UnixMicro(int64(1_000_000 * (2 + 10*i)))}
		}
		run.Snapshots[1].History.Process = process
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want {
			t.Errorf("of process %s: %s, %v; want %s", process, f.Verdict, f.Reasons, want)
		}
	}
}
