package diff

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAGraphIsOneLeakWhereFilesTellNoOwners is of programs as PyTorch's snapshots
// show them.
func TestAGraphIsOneLeakWhereFilesTellNoOwners(t *testing.T) {
	const activation = 64 * snapshot.KiB
	weights := site{stack: "init:1 main:2"}
	adam := site{stack: "[step:9] main:25", every: 100}
	for _, c := range []struct {
		name    string
		program program
		want    []string
	}{
		{
			"a loss kept with its graph in one function: the line that computed last",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation, micros: 10},
				{stack: "[relu:1] main:21", every: 1, size: activation, micros: 20},
				{stack: "[cross_entropy:1] main:22", every: 1, micros: 30},
			},
			[]string{"main:22 x3"},
		}, {
			"in a script without functions, of a model in classes",
			program{
				{stack: "[linear:1] Net.__init__:4 <module>:2"},
				{stack: "[linear:1] Net.encode:8 Net.forward:9 [call:1] <module>:20", every: 1, size: activation, micros: 10},
				{stack: "[gelu:1] Net.forward:10 [call:1] <module>:20", every: 1, size: activation, micros: 20},
				{stack: "[cross_entropy:1] <module>:21", every: 1, micros: 30},
				{stack: "<module>:19", every: 1, size: 4096, micros: 5},
			},
			[]string{"<module>:21 x4"},
		}, {
			"where nothing tells the order, the line of the smallest",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation},
				{stack: "[relu:1] main:21", every: 1, size: activation},
				{stack: "[cross_entropy:1] main:22", every: 1},
			},
			[]string{"main:22 x3"},
		}, {
			"… but not that of the labels, which are smaller",
			program{
				weights, adam,
				{stack: "main:19", every: 1, size: 64, holder: "total", kind: "graph"},
				{stack: "[linear:1] main:20", every: 1, size: activation, holder: "total", kind: "graph"},
				{stack: "[cross_entropy:1] main:22", every: 1, size: 4096, holder: "total", kind: "graph"},
			},
			[]string{"main:22 x3"},
		}, {
			"a function that merely computes the loss is not meant",
			program{
				weights, adam,
				{stack: "[linear:1] Net.forward:8 [call:1] main:20", every: 1, size: activation, micros: 10},
				{stack: "[relu:1] Net.forward:9 [call:1] main:20", every: 1, size: activation, micros: 20},
				{stack: "[cross_entropy:1] criterion:3 main:22", every: 1, micros: 30},
			},
			[]string{"main:22 x3"},
		}, {
			"the graph of one value is one leak over several functions, and so is its batch",
			program{
				weights, adam,
				{stack: "[linear:1] forward:8 validate:20 main:5", every: 1, size: activation, holder: "t.total", kind: "graph"},
				{stack: "[cross_entropy:1] validate:21 main:5", every: 1, holder: "t.total", kind: "graph"},
				{stack: "main:4", every: 1, size: 4096, holder: "x", kind: "variable"},
			},
			[]string{"validate:21 x3"},
		}, {
			"what a list holds is a leak of its own",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation, holder: "curve", kind: "graph"},
				{stack: "[cross_entropy:1] main:21", every: 1, holder: "curve", kind: "graph"},
				{stack: "[clone:1] main:22", every: 1, size: 4096, holder: "seen"},
			},
			[]string{"main:21 x2", "main:22 x1"},
		}, {
			"two lists that a loop fills at one pace are two leaks",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation, holder: "outputs", micros: 10},
				{stack: "[relu:1] main:21", every: 1, size: activation, holder: "features", micros: 20},
				{stack: "[cross_entropy:1] main:22", every: 1, holder: "losses", micros: 30},
			},
			[]string{"main:20 x1", "main:21 x1", "main:22 x1"},
		}, {
			"the graphs of two values are two leaks",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation, holder: "a", kind: "graph"},
				{stack: "[relu:1] main:21", every: 1, holder: "a", kind: "graph"},
				{stack: "[linear:1] main:30", every: 1, size: activation, holder: "b", kind: "graph"},
				{stack: "[relu:1] main:31", every: 1, holder: "b", kind: "graph"},
			},
			[]string{"main:21 x2", "main:31 x2"},
		}, {
			"two stacks are too few to be a graph",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation, micros: 10},
				{stack: "[cross_entropy:1] main:21", every: 1, micros: 20},
			},
			[]string{"main:20 x1", "main:21 x1"},
		}, {
			"no forward pass, no graph",
			program{weights, adam, {stack: "a:1 main:20", every: 1, micros: 10}, {stack: "b:1 main:21", every: 1, micros: 20}, {stack: "c:1 main:22", every: 1, micros: 30}},
			[]string{"a:1 x1", "b:1 x1", "c:1 x1"},
		}, {
			"what grows at another pace is not of the graph",
			program{
				weights, adam,
				{stack: "[linear:1] main:20", every: 1, size: activation},
				{stack: "[relu:1] main:21", every: 1, size: activation},
				{stack: "[cross_entropy:1] main:22", every: 1},
				{stack: "[clone:1] main:23", every: 7},
			},
			[]string{"main:22 x3", "main:23 x1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.program.leaks(t); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAVariableIsNotSaidToHoldWhatGathers(t *testing.T) {
	p := program{{stack: "init:1 main:2"}, {stack: "[clone:1] main:20", every: 1, holder: "x", kind: "variable"}}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Verdict != Leak || r.Findings[0].Holder != nil {
		t.Errorf("got %+v, want one leak without a holder", r.Findings)
	}
}

func TestBlocksWithoutAStackHaveAHolder(t *testing.T) {
	p := program{{stack: "init:1 main:2"}, {stack: "", every: 1, holder: "kept"}}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Holder == nil {
		t.Errorf("got %+v, want one finding with a holder", r.Findings)
	}
}

func TestAListThatIsTooShortHoldsAFew(t *testing.T) {
	for _, c := range []struct {
		name   string
		owners snapshot.Owners
		short  bool
	}{
		{"where the program's references alone hold the blocks", snapshot.OwnedByUser, true},
		{"but it may be of lists where nothing tells", 0, false},
		{"and a graph holds more than its end", snapshot.OwnedByUser | snapshot.OwnedByTape, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program{{stack: "init:1 main:2"}, {stack: "[relu:1] main:20", every: 1, holder: "Ring.slots", owners: c.owners}}
			run := p.run(100, 10)
			run.Snapshots[10].Holders[0].Items = 8
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			if (f.Partly != nil) != c.short || (f.Holder == nil) != c.short {
				t.Errorf("held by %v, partly by %v", f.Holder, f.Partly)
			}
			if id := f.Cause; c.short && (id == nil || id.ID != "release-forgotten") {
				t.Errorf("cause %v, want release-forgotten", id)
			}
		})
	}
}

func TestAGraphIsHeldByItsValue(t *testing.T) {
	p := program{
		{stack: "init:1 main:2"},
		{stack: "[linear:1] main:20", every: 1, size: 4096, holder: "curve", kind: "graph"},
		{stack: "[cross_entropy:1] main:21", every: 1, holder: "loss", kind: "variable"},
	}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Holder == nil || r.Findings[0].Holder.Path != "curve" {
		t.Fatalf("got %+v, want one leak held by curve", r.Findings)
	}
	if c := r.Findings[0].Cause; c == nil || c.ID != "graph-retained" {
		t.Errorf("cause %v, want graph-retained", c)
	}
}
