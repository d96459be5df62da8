package baseline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

// analysis is what is said of a run of so many steps, with a snapshot every tenth of
// them, of a program that keeps a block in every so many steps at each of these
// functions; one in every 0 steps is kept once. Behind "/" stands what tells two stacks of
// one function apart.
func analysis(t *testing.T, steps int64, line int, every map[string]int64) *diff.Result {
	t.Helper()
	run := &snapshot.Run{}
	var functions strings.Builder // whose code is another where they keep another number
	for function, n := range every {
		fmt.Fprintf(&functions, "%s:%d:%d: ", function, line, n+1)
	}
	run.Info.Code = snapshot.Code{Python: "3.11", Looks: 1, Files: map[string]string{"train.py": functions.String()}}
	for step := int64(0); step <= steps; step += steps / 10 {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
		s.Devices = []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}}
		b := &s.Blocks
		for function, n := range every {
			function, other, _ := strings.Cut(function, "/")
			id := s.Stacks.InternFrames([]snapshot.Frame{{Function: function, File: "train.py", Line: line + len(other)}})
			for i := range max(1, step) {
				if n == 0 && i > 0 || n > 0 && (i%n != 0 || step == 0) {
					continue
				}
				b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(id)<<32+uint64(i)*4096)
				b.Size, b.Requested = append(b.Size, 1024), append(b.Requested, 1024)
				b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, id), append(b.BirthStep, i)
			}
		}
		held := snapshot.Bytes(b.Len()) * 1024
		s.Devices[0].Meters = snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 64 << 20}
		s.Segments = []snapshot.Segment{{Size: 64 << 20, NumBlocks: b.Len()}}
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerify(t *testing.T) {
	type program = map[string]int64
	both := program{"keep": 1, "log": 2, "weights": 0}
	for _, c := range []struct {
		name          string
		before, after program
		steps         int64 // of the run after
		want          string
		overall       baseline.Answer
	}{
		{"all are fixed", both, program{"keep": 0, "weights": 0}, 100, "keep fixed, log fixed", baseline.Gone},
		{"one of two is fixed", both, program{"log": 2, "weights": 0}, 100, "keep fixed, log not fixed", baseline.Remains},
		{"none is", both, both, 100, "keep not fixed, log not fixed", baseline.Remains},
		{"one grows at half its pace", program{"keep": 1, "weights": 0}, program{"keep": 2, "weights": 0}, 100, "keep not fixed", baseline.Remains},
		{"the fix leaks elsewhere", program{"keep": 1, "weights": 0}, program{"push": 1, "weights": 0}, 100, "keep fixed, push not fixed", baseline.Remains},
		{"the run after is too short for the slower one", program{"keep": 1, "log": 10, "weights": 0}, program{"weights": 0}, 40, "keep fixed, log cannot tell", baseline.CannotTell},
		{"a run as long as the one that showed it is long enough", program{"log": 12, "weights": 0}, program{"weights": 0}, 100, "log fixed", baseline.Gone},
		{"nothing leaked before", program{"weights": 0}, program{"weights": 0}, 100, "", baseline.CannotTell},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := baseline.Verify(analysis(t, 100, 10, c.before), analysis(t, c.steps, 17, c.after))
			var got []string
			for _, check := range v.Checks {
				got = append(got, fmt.Sprint(check.Finding.Rows[0].Frames[0].Function, " ", check.Answer))
				if check.Why == "" {
					t.Error("an answer without a reason")
				}
			}
			if text := strings.Join(got, ", "); text != c.want || v.Overall() != c.overall {
				t.Errorf("%s: %s; want %s: %s", v.Overall(), text, c.overall, c.want)
			}
		})
	}
}

// Lines of one function have one fingerprint: a leak's rate before and after is of all of them.
func TestVerifyComparesTheSamePlaces(t *testing.T) {
	run := analysis(t, 100, 10, map[string]int64{"keep": 1, "keep/log": 2, "weights": 0})
	for _, c := range baseline.Verify(run, run).Checks {
		if c.Before != c.After || c.Before.Value < 1400 {
			t.Errorf("%s: before %+v, after %+v, of the same run, which gains 1536 B a step", c.Why, c.Before, c.After)
		}
	}
	mended := analysis(t, 100, 10, map[string]int64{"keep": 0, "keep/log": 2, "weights": 0})
	if c := baseline.Verify(run, mended).Checks[0]; c.Why != "it leaks less, but still leaks" {
		t.Errorf("%s: before %+v, after %+v", c.Why, c.Before, c.After)
	}
}

// 1,024 GPUs that leak at one place, and 13,000 places, took more than half a minute: each leak was
// held against all.
// TestVerifyOfAGraph: what the nodes of a graph take, the growth of the process alone tells.
func TestVerifyOfAGraph(t *testing.T) {
	before, after := analysis(t, 100, 10, map[string]int64{"keep": 1}), analysis(t, 100, 10, map[string]int64{"keep": 1})
	for i, r := range []*diff.Result{before, after} {
		rate := r.Findings[0].Rate
		rate.Bytes.Value *= float64(i + 2)
		r.Findings[0].Nodes = &diff.Reserve{Rate: rate}
	}
	if v := baseline.Verify(before, after); v.Checks[0].Before.Value != 3<<10 || v.Checks[0].After.Value != 4<<10 {
		t.Errorf("%.0f bytes a step before, %.0f after", v.Checks[0].Before.Value, v.Checks[0].After.Value)
	}
}

func TestVerifyOfManyLeaks(t *testing.T) {
	for _, c := range []struct{ devices, places int }{{500, 1}, {1, 2000}} {
		r := leaking(t, c.devices, c.places)
		start := time.Now()
		checks := baseline.Verify(r, r).Checks
		if took := time.Since(start); len(checks) != c.devices*c.places || took > 3*time.Second {
			t.Errorf("%d leaks on %d devices were held against each other in %s", len(checks), c.devices, took)
		}
	}
}

// leaking is a run that leaks on so many devices at so many places, at a pace of its own at each.
func leaking(t *testing.T, devices, places int) *diff.Result {
	t.Helper()
	run := &snapshot.Run{}
	for step := int64(0); step <= 100; step += 10 {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
		b := &s.Blocks
		for d := range devices {
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.CUDA, Index: d, Limit: snapshot.Unknown})
			s.Segments = append(s.Segments, snapshot.Segment{Device: d, Size: 64 << 20, FirstBlock: b.Len(), NumBlocks: places})
			for p := range places {
				size := snapshot.Bytes(step) * snapshot.Bytes(1024+1000*p+p*p)
				b.Segment, b.Address = append(b.Segment, int32(d)), append(b.Address, uint64(p)<<20)
				b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
				b.State = append(b.State, snapshot.Live)
				b.Stack = append(b.Stack, s.Stacks.InternFrames([]snapshot.Frame{{Function: fmt.Sprint("keep", p), File: "train.py", Line: 1}}))
				b.Count = append(b.Count, step)
			}
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
