package diff

import (
	"fmt"
	"math"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestRolesAreWhatProcessesHoldTogether(t *testing.T) {
	flat := func(mib float64) func(float64) float64 { return func(float64) float64 { return mib } }
	rising := func(t float64) float64 { return 50 + 5*t }
	again := func(t float64) float64 { return rising(math.Mod(t-0.5, 10)) }
	many := []lifetime{{"train.py", 0, 30, flat(100)}}
	for n := range 20 {
		many = append(many, lifetime{fmt.Sprintf("role %c", 'a'+n), 0, 30, flat(float64(20 + n))})
	}
	type role struct {
		name string
		most int
		last float64 // MiB
		grow bool
	}
	for _, c := range []struct {
		name string
		tree []lifetime
		want []role
	}{
		{"one process is no picture", []lifetime{{"train.py", 0, 30, flat(100)}}, nil},
		{"nor is one with a small helper", []lifetime{{"train.py", 0, 30, flat(100)}, {"resource tracker", 0, 30, flat(4)}}, nil},
		{"unless it grows", []lifetime{{"train.py", 0, 30, flat(4000)}, {"logger", 0, 30, rising}}, []role{{"train.py", 1, 4000, false}, {"logger", 1, 200, true}}},
		{"workers of one role", []lifetime{{"train.py", 0, 30, flat(100)}, {"loader worker 0", 1, 30, flat(50)}, {"loader worker 1", 1, 30, flat(50)}},
			[]role{{"train.py", 1, 100, false}, {"loader worker", 2, 100, false}}},
		{"one that grows alone stands apart", []lifetime{{"train.py", 0, 30, flat(100)}, {"loader worker 0", 1, 30, flat(50)}, {"loader worker 1", 1, 30, rising}, {"loader worker 2", 1, 30, flat(50)}},
			[]role{{"train.py", 1, 100, false}, {"loader worker 1", 1, 200, true}, {"loader worker", 2, 100, false}}},
		{"a pool that is replaced", []lifetime{{"train.py", 0, 30, flat(100)}, {"pool worker 1", 0, 10, rising}, {"pool worker 2", 10.5, 20, again}, {"pool worker 3", 20.5, 30, again}},
			[]role{{"train.py", 1, 100, false}, {"pool worker", 1, 97.5, false}}},
		{"more roles than are asked for", many, []role{{"train.py", 1, 100, false}, {"role t", 1, 39, false}, {"role s", 1, 38, false}, {"18 other roles", 1, 513, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(flatRun(treeOf(c.tree...)), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			seconds, roles := r.Roles(4)
			var got []role
			for _, s := range roles {
				got = append(got, role{s.Name, s.Most, s.Bytes[len(seconds)-1] / (1 << 20), s.Rate.Unit != ""})
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestAPageThatAForkHasInCommonCountsOnce(t *testing.T) {
	flat := func(float64) float64 { return 100 }
	tree := treeOf(lifetime{"train.py", 0, 10, flat}, lifetime{"loader worker 0", 5, 10, flat}, lifetime{"loader worker 1", 5, 6, flat})
	for i := range tree.Processes {
		tree.Processes[i].Parent = 100
		for k := range tree.Processes[i].Points {
			tree.Processes[i].Points[k].OfOthers = snapshot.Unknown
		}
	}
	main, worker := tree.Processes[0].Points, tree.Processes[1].Points
	main[12].OfOthers, worker[2].OfOthers = 50<<20, 40<<20 // at second 6; the other worker ended before it was asked
	r, err := Analyze(flatRun(tree), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	_, roles := r.Roles(4)
	if got := fmt.Sprint(roles[0].Bytes[9]/(1<<20), roles[0].Bytes[13]/(1<<20), roles[1].Bytes[11]/(1<<20), roles[1].Bytes[20]/(1<<20)); got != "100 100 20 10" {
		t.Errorf("%s", got)
	}
}

func TestSharedMemoryIsARoleOfItsOwn(t *testing.T) {
	tree := treeOf(lifetime{"train.py", 0, 10, func(float64) float64 { return 100 }})
	for k := range tree.Processes[0].Points {
		tree.Processes[0].Points[k].Shared = snapshot.Bytes(k) << 20
	}
	at := tree.Processes[0].Points[20].Time
	tree.Host = []snapshot.HostPoint{{Time: at, SegmentBytes: 30 << 20}}
	r, err := Analyze(flatRun(tree), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	_, roles := r.Roles(4)
	if s := roles[len(roles)-1]; s.Name != "shared memory" || s.Bytes[10] != 10<<20 || s.Bytes[20] != 30<<20 || s.Rate.Unit == "" {
		t.Errorf("%+v", s)
	}
}
