package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// program is a run of a program that is written as the stacks it allocates from.
type program []site

// site is where a program allocates, and when.
type site struct {
	// stack names the calls, innermost first: "forward:8 step:20 main:3". Frames in
	// brackets are a library's.
	stack  string
	every  int64 // a block is born every so many steps and stays; 0: one before the first step
	latest bool  // only the latest block stays
	after  int64 // the first step that counts
	owners snapshot.Owners
	holder string // path of the list that holds the blocks; "" for none
	kind   string // of holder, where that is no list
	size   snapshot.Bytes
	micros int64 // into its step at which it allocates; 0: the file tells steps instead
}

func parseStack(text string) []snapshot.Frame {
	var frames []snapshot.Frame
	for _, call := range strings.Fields(text) {
		file := "train.py"
		if name, ok := strings.CutPrefix(call, "["); ok {
			call, file = strings.TrimSuffix(name, "]"), "/site-packages/torch/nn/functional.py"
		}
		function, number, _ := strings.Cut(call, ":")
		line, _ := strconv.Atoi(number)
		frames = append(frames, snapshot.Frame{Function: function, File: file, Line: line})
	}
	return frames
}

// births are the steps in which what is alive after step t was born.
func (s *site) births(t int64) []int64 {
	if s.every == 0 {
		return []int64{snapshot.NoStep}
	}
	var born []int64
	for step := s.after; step < t; step++ {
		if step%s.every == 0 {
			born = append(born, step)
		}
	}
	if s.latest {
		born = born[max(0, len(born)-1):]
	}
	return born
}

// run takes a snapshot every so many steps.
func (p program) run(steps, every int64) *snapshot.Run {
	run := &snapshot.Run{}
	for t := int64(0); t <= steps; t += every {
		s := build(t)
		b := &s.Blocks
		for i := range p {
			id := s.Stacks.InternFrames(parseStack(p[i].stack))
			births := p[i].births(t)
			for _, born := range births {
				size := max(p[i].size, 512)
				b.Segment = append(b.Segment, 0)
				b.Address = append(b.Address, uint64(i)<<32+uint64(born+1)*8)
				b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
				b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, id)
				var instant int64
				if p[i].micros > 0 && born != snapshot.NoStep {
					instant, born = build(born).Mark.Time.UnixMicro()+p[i].micros, snapshot.NoStep
				}
				b.BirthStep, b.BirthTime = append(b.BirthStep, born), append(b.BirthTime, instant)
				b.Owners = append(b.Owners, p[i].owners)
			}
			if p[i].holder != "" && len(births) > 0 {
				s.Holders = append(s.Holders, snapshot.Holder{Stack: id, Path: p[i].holder, Kind: cmp.Or(p[i].kind, "list"), Items: len(births)})
			}
		}
		s.Segments[0].NumBlocks = b.Len()
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// leaks are the findings that leak, each as its head and the number of its stacks.
func (p program) leaks(t *testing.T) []string {
	t.Helper()
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range r.Findings {
		if f.Verdict == Leak {
			head := "nowhere"
			if f.Headline >= 0 {
				head = fmt.Sprint(f.Rows[0].Frames[f.Headline].Function, ":", f.Rows[0].Frames[f.Headline].Line)
			}
			out = append(out, fmt.Sprint(head, " x", len(f.Rows)))
		}
	}
	slices.Sort(out)
	return out
}

func TestWhatLeaksTogetherIsOneFindingAtItsLine(t *testing.T) {
	const (
		user = snapshot.OwnedByUser
		tape = snapshot.OwnedByTape
	)
	weights := site{stack: "init:1 main:2"}
	adam := site{stack: "[step:9] step:25 main:3", every: 100}
	for _, c := range []struct {
		name    string
		program program
		want    []string
	}{
		{
			"a single stack is named at the user's innermost call",
			program{weights, adam, {stack: "[linear:1] forward:8 step:20 main:3", every: 1}},
			[]string{"forward:8 x1"},
		}, {
			"stacks below one call are one leak at that call",
			program{weights, adam, {stack: "[linear:1] forward:8 step:20 main:3", every: 1, size: 4096}, {stack: "[relu:1] forward:9 step:20 main:3", every: 1}},
			[]string{"forward:8 x2"},
		}, {
			"two functions below one call meet there",
			program{weights, adam, {stack: "[linear:1] encode:8 step:20 main:3", every: 1}, {stack: "[relu:1] decode:9 step:20 main:3", every: 1}},
			[]string{"step:20 x2"},
		}, {
			"leaks that meet only where healthy memory comes through stay apart",
			program{weights, adam, {stack: "keep:8 step:20 main:3", every: 1}, {stack: "log:9 step:21 main:3", every: 1}},
			[]string{"keep:8 x1", "log:9 x1"},
		}, {
			"leaks of different pace stay apart",
			program{weights, adam, {stack: "keep:8 step:20 main:3", every: 1}, {stack: "log:9 step:20 main:3", every: 7}},
			[]string{"keep:8 x1", "log:9 x1"},
		}, {
			"leaks into different lists stay apart",
			program{weights, adam, {stack: "keep:8 step:20 main:3", every: 1, owners: user, holder: "Net.a"}, {stack: "log:9 step:20 main:3", every: 1, owners: user, holder: "Net.b"}},
			[]string{"keep:8 x1", "log:9 x1"},
		}, {
			"a graph is one leak over the lines of the function that made it",
			program{weights, adam, {stack: "[linear:1] step:20 main:3", every: 1, owners: tape, size: 4096}, {stack: "[loss:1] step:21 main:3", every: 1, owners: tape}},
			[]string{"step:20 x2"},
		}, {
			"a graph that a forward pass made is its caller's",
			program{weights, adam, {stack: "[linear:1] Net.forward:8 step:20 main:3", every: 1, owners: tape}},
			[]string{"step:20 x1"},
		}, {
			"a helper that healthy memory comes from is passed over",
			program{weights, {stack: "make:8 setup:5 main:2"}, {stack: "make:8 record:7 step:20 main:3", every: 1}},
			[]string{"record:7 x1"},
		}, {
			"a helper that only leaks come from is not",
			program{weights, {stack: "make:9 setup:5 main:2"}, {stack: "make:8 record:7 step:20 main:3", every: 1}},
			[]string{"make:8 x1"},
		}, {
			"a function that is written on one line is no witness against itself, where functions are unknown",
			program{weights, {stack: ":6"}, {stack: ":6 :12", every: 1}},
			[]string{":6 x1"},
		}, {
			"the fields of objects in one list leak where the objects are made",
			program{weights, {stack: "[linear:1] Net.__init__:8 epoch:7 main:3", every: 10, owners: user, holder: "Trial.nets[].weight", size: 4096}, {stack: "[linear:2] Net.__init__:8 epoch:7 main:3", every: 10, owners: user, holder: "Trial.nets[].bias"}},
			[]string{"epoch:7 x2"},
		}, {
			"what one function makes by several of its lines leaks in that function",
			program{weights, {stack: "[linear:1] Net.__init__:8 sweep:7 main:3", every: 10, owners: user, holder: "Trial.nets[].weight", size: 4096}, {stack: "[full:2] fit:9 sweep:6 main:3", every: 10, owners: user, holder: "Trial.nets[].moment"}},
			[]string{"sweep:7 x2"},
		}, {
			"a list is filled by a method of its type",
			program{weights, {stack: "[relu:1] Net.features:8 Probe.look:7 main:3", every: 1, owners: user, holder: "Probe.seen"}},
			[]string{"Probe.look:7 x1"},
		}, {
			"a longer path names no type",
			program{weights, {stack: "[relu:1] Net.features:8 Probe.look:7 main:3", every: 1, owners: user, holder: "Probe.net.seen"}},
			[]string{"Net.features:8 x1"},
		}, {
			"a backward pass keeps what it keeps itself",
			program{weights, {stack: "[tanh:1] Op.backward:8 [apply:1] Probe.look:7 main:3", every: 1, owners: user, holder: "Probe.seen"}},
			[]string{"Op.backward:8 x1"},
		}, {
			"an operation's forward pass keeps what it keeps itself",
			program{weights, {stack: "[mul:1] Square.forward:8 [Function.apply:1] Probe.look:7 main:3", every: 1, owners: user, holder: "Probe.used[].result"}},
			[]string{"Square.forward:8 x1"},
		}, {
			"a list of the elements of another is filled by the element's method",
			program{weights, {stack: "[mean:1] Probe.see:8 Probes.step:7 main:3", every: 1, owners: user, holder: "Probes.all[].values"}},
			[]string{"Probe.see:8 x1"},
		}, {
			"a function literal fills what it was given",
			program{weights, {stack: "[full:1] more.func2.1:8 Each.step:7 main:3", every: 1, owners: user, holder: "Each.list"}},
			[]string{"more.func2.1:8 x1"},
		}, {
			"what another call put into the same cache clears nobody",
			program{weights, {stack: "[full:1] table:9 encode:8 step:7 main:3", every: 1, owners: user, holder: "Tables.byLength"}, {stack: "[full:1] table:9 encode:8 evaluate:6 main:3", every: 100, owners: user, holder: "Tables.byLength"}},
			[]string{"table:9 x1"},
		}, {
			"a leak without a frame of the user's is named nowhere",
			program{weights, {stack: "[accumulate:1] [backward:2]", every: 1}},
			[]string{"nowhere x1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.program.leaks(t); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAFindingSumsItsRows(t *testing.T) {
	p := program{{stack: "init:1 main:2"}, {stack: "[linear:1] forward:8 step:20 main:3", every: 1, size: 4096, owners: snapshot.OwnedByTape}, {stack: "[relu:1] forward:9 step:20 main:3", every: 1, size: 1024, owners: snapshot.OwnedByUser | snapshot.OwnedByTape}}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings, want 1", len(r.Findings))
	}
	f := &r.Findings[0]
	if got, want := f.Growth(), (Tally{Blocks: 200, Bytes: 100 * 5120, Requested: 100 * 5120}); got != want || f.Born() != want || f.After() != want || f.Before() != (Tally{}) || f.Died() != (Tally{}) {
		t.Errorf("growth %+v, want %+v", got, want)
	}
	if got := f.Owners(); got != snapshot.OwnedByUser|snapshot.OwnedByTape {
		t.Errorf("owners %v", got.Names())
	}
	if f.Rate.Blocks.Value != 2 || f.Rate.Bytes.Value != 5120 {
		t.Errorf("rate %+v; want 2 blocks and 5120 bytes a step", f.Rate)
	}
}

// What one call of a C++ program keeps is one leak, as in Python; what has main alone in common
// is not.
func TestTotalsOfANativeProgramAreJoinedBelowMain(t *testing.T) {
	type total struct {
		stack string // "function:line …", innermost first, in broker.cc
		each  int64  // blocks a step
	}
	publish := []total{{"publish:23 serve:35 main:46", 1}, {"Message:13 publish:22 serve:35 main:46", 3}, {"publish:22 serve:35 main:46", 3}}
	for _, c := range []struct {
		name   string
		totals []total
		want   []string // lines of findings
	}{
		{"one call", publish, []string{"publish:23"}},
		{"and another", append(slices.Clone(publish), total{"subscribe:19 serve:34 main:46", 1}), []string{"publish:23", "subscribe:19"}},
		{"calls of main itself", []total{{"put:5 main:46", 2}, {"log:9 main:47", 1}}, []string{"put:5", "log:9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runOf()
			for step := int64(60); step <= 600; step += 60 {
				s := build(step, make([]block, len(c.totals))...)
				s.Blocks.BirthStep, s.Blocks.Count = nil, make([]int64, len(c.totals))
				for i, total := range c.totals {
					frames := parseStack(total.stack)
					for k := range frames {
						frames[k].File = "/src/broker.cc"
					}
					size := snapshot.Bytes(1000*step) / snapshot.Bytes(i+1)
					s.Blocks.Stack[i], s.Blocks.Count[i], s.Blocks.Size[i], s.Blocks.Requested[i] = s.Stacks.InternFrames(frames), total.each*step, size, size
				}
				run.Snapshots = append(run.Snapshots, s)
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range r.Findings {
				f := &r.Findings[i]
				got = append(got, fmt.Sprintf("%s:%d", f.Rows[0].Frames[f.Headline].Function, f.Rows[0].Frames[f.Headline].Line))
			}
			if !slices.Equal(got, c.want) || r.Leaks() != len(c.want) {
				t.Errorf("%d leaks, findings at %v; want %v", r.Leaks(), got, c.want)
			}
		})
	}
}
