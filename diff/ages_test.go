package diff

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// agesPatterns are how the births of a site's live blocks may lie when a run of n
// steps is looked at, with the share of looks at which a leak may be seen in it.
var agesPatterns = []struct {
	name   string
	leaks  bool
	alarms float64 // at most, of what is healthy
	found  float64 // at least, of what leaks
	births func(r *rand.Rand, n int64) []int64
}{
	{"weights", false, 0, 0, func(r *rand.Rand, _ int64) []int64 { return times(40, func(int64) int64 { return 0 }) }},
	{"state made in the first steps", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		return times(30, func(int64) int64 { return r.Int64N(n / 12) })
	}},
	{"temporaries of the last step", false, 0, 0, func(_ *rand.Rand, n int64) []int64 {
		return times(30, func(int64) int64 { return n - 1 })
	}},
	{"three to five things made at any time", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		return times(3+r.Int64N(3), func(int64) int64 { return r.Int64N(n) })
	}},
	{"six to eleven things made at any time", false, 0.05, 0, func(r *rand.Rand, n int64) []int64 {
		return times(6+r.Int64N(6), func(int64) int64 { return r.Int64N(n) })
	}},
	{"a cache over a finite set of keys", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		var births []int64
		seen := map[int64]bool{}
		for step := range n {
			if k := r.Int64N(8 + n/40); !seen[k] {
				seen[k] = true
				births = append(births, step)
			}
		}
		return births
	}},
	{"a queue of the last steps", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		length := 2 + r.Int64N(n/2)
		return times(length, func(i int64) int64 { return n - length + i })
	}},
	{"a list that is reset behind each epoch", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		since := 1 + r.Int64N(n/3) // of three epochs or more
		return times(since, func(i int64) int64 { return n - since + i })
	}},
	{"a pool whose buffers live for a random time", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		var births []int64
		for step := range n {
			if r.Float64() < math.Exp(-float64(n-step)/(float64(n)/12)) {
				births = append(births, step)
			}
		}
		return append(births, n-1)
	}},
	{"the last checkpoints", false, 0, 0, func(r *rand.Rand, n int64) []int64 {
		every := 5 + r.Int64N(10)
		return times(4, func(i int64) int64 { return (n/every - 3 + i) * every })
	}},
	{"a block each step", true, 0, 1, func(_ *rand.Rand, n int64) []int64 { return times(n, func(i int64) int64 { return i }) }},
	{"blocks each few steps", true, 0, 1, func(r *rand.Rand, n int64) []int64 {
		every := 2 + r.Int64N(n/12-1)
		return times(n/every, func(i int64) int64 { return i * every })
	}},
	{"a block now and then", true, 0, 0.9, func(r *rand.Rand, n int64) []int64 {
		var births []int64
		for step := range n {
			if r.Float64() < 0.1 {
				births = append(births, step)
			}
		}
		return births
	}},
	{"a leak beside weights", true, 0, 1, func(r *rand.Rand, n int64) []int64 {
		return append(times(20, func(int64) int64 { return 0 }), times(n/4, func(i int64) int64 { return 4 * i })...)
	}},
}

func times(n int64, at func(int64) int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = at(int64(i))
	}
	return out
}

// bornAt is a snapshot of a step with one site whose blocks were born so.
func bornAt(step, epoch int64, births []int64) *snapshot.Snapshot {
	var blocks []block
	for _, b := range births {
		blocks = append(blocks, block{"x", 512, b})
	}
	s := build(step, blocks...)
	s.Mark.Epoch = epoch
	return s
}

// TestFirstVerdictOnSimulatedBirths states how often one snapshot misleads. A
// window that has not reached its bound is not among the healthy: at that moment it
// is a leak in all that can be seen.
func TestFirstVerdictOnSimulatedBirths(t *testing.T) {
	const looks = 300
	for _, p := range agesPatterns {
		t.Run(p.name, func(t *testing.T) {
			alarms := 0
			for look := range uint64(looks) {
				r := rand.New(rand.NewPCG(7, look))
				n := 100 + r.Int64N(900)
				a := Inspect(bornAt(n, 3, p.births(r, n)))
				if a.Sites[0].Verdict == Leak {
					alarms++
				}
			}
			share := float64(alarms) / looks
			t.Logf("called a leak in %.1f %% of the looks", 100*share)
			if p.leaks && share < p.found || !p.leaks && share > p.alarms {
				t.Errorf("called a leak in %.1f %% of the looks", 100*share)
			}
		})
	}
}

func TestFirstVerdictSaysWhatItRestsOn(t *testing.T) {
	each := times(100, func(i int64) int64 { return i })
	timed := func(s *snapshot.Snapshot) *snapshot.Snapshot {
		s.Blocks.BirthTime = make([]int64, s.Blocks.Len())
		for i, step := range s.Blocks.BirthStep {
			s.Blocks.BirthTime[i] = 1e6 * (1 + step)
		}
		s.Blocks.BirthStep = nil
		s.History.First, s.History.Last = s.Mark.Time.AddDate(-2000, 0, 0), s.Mark.Time
		return s
	}
	counted := bornAt(100, snapshot.NoStep, each)
	counted.Mark.StepCounted = true
	roomy := bornAt(100, 2, each)
	roomy.Devices[0].Limit = 1 << 50
	whole := bornAt(100, 2, times(100, func(int64) int64 { return snapshot.NoStep }))
	whole.Blocks.Count, whole.Blocks.Address = times(100, func(int64) int64 { return 5 }), make([]uint64, 100)
	byTime := bornAt(100, 2, each)
	byTime.Mark.Step = snapshot.NoStep
	for _, c := range []struct {
		name     string
		s        *snapshot.Snapshot
		pattern  Pattern
		verdict  Verdict
		evidence Evidence
		says     string
	}{
		{"evenly over several epochs", bornAt(100, 2, each), Throughout, Leak, Strong, "a buffer below its bound"},
		{"evenly over the first epoch", bornAt(100, 0, each), Throughout, Leak, Weak, "first epoch"},
		{"evenly, and epochs are not known", bornAt(100, snapshot.NoStep, each), Throughout, Leak, Weak, "epochs are unknown"},
		{"evenly, over the steps that a recording saw", counted, Throughout, Leak, Weak, "only steps of the recording are known"},
		{"evenly, and next to nothing", roomy, Throughout, Bounded, Weak, "of the device in 1000000 steps"},
		{"few births", bornAt(100, 2, times(8, func(i int64) int64 { return 12 * i })), Throughout, Leak, Weak, "8 allocations are few"},
		{"evenly since the middle", bornAt(100, 2, each[50:]), InWindow, Inconclusive, Weak, "a leak that began then"},
		{"at the start", bornAt(100, 2, each[:5]), AtStart, Bounded, Weak, "allocated once"},
		{"just now", bornAt(100, 2, each[97:]), JustNow, Bounded, Weak, "temporary, or recreated"},
		{"three births", bornAt(100, 2, []int64{5, 50, 90}), Scattered, Inconclusive, Weak, "3 distinct steps"},
		{"older than the recording", bornAt(100, 2, append(times(9, func(int64) int64 { return snapshot.NoStep }), 50)), Unborn, Inconclusive, Weak, "older than the recording"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Inspect(c.s)
			if a.Why != "" || len(a.Sites) != 1 {
				t.Fatalf("%d sites, %q", len(a.Sites), a.Why)
			}
			got := a.Sites[0]
			if got.Pattern != c.pattern || got.Verdict != c.verdict || got.Evidence != c.evidence || !strings.Contains(strings.Join(got.Reasons, "; "), c.says) {
				t.Errorf("got %s, %s, %s: %q", got.Pattern, got.Verdict, got.Evidence, got.Reasons)
			}
		})
	}
	t.Run("times never make a leak", func(t *testing.T) {
		s := timed(bornAt(100, 2, each))
		s.Blocks.BirthTime = times(100, func(i int64) int64 { return s.Mark.Time.UnixMicro() - 1e6*(100-i) })
		s.History.First = s.Mark.Time.Add(-101e9)
		a := Inspect(s)
		if len(a.Sites) != 1 || a.Sites[0].Pattern != Throughout || a.Sites[0].Verdict != Inconclusive || a.Sites[0].Rate != (Rate{}) {
			t.Errorf("got %+v, %q", a.Sites, a.Why)
		}
	})
	recorded := bornAt(100, 2, []int64{snapshot.NoStep})
	recorded.History.Events, recorded.History.First = 9, time.Unix(1000, 0)
	// The blocks of a GPU at a step without the record of allocations, beside totals of the CPU.
	light := bornAt(100, 2, []int64{snapshot.NoStep, snapshot.NoStep})
	light.Blocks.Address, light.Blocks.Count = []uint64{4096, 0}, []int64{1, 7}
	for _, c := range []struct {
		name string
		s    *snapshot.Snapshot
		says string
	}{
		{"blocks beside totals", light, "does not record when its live blocks"},
		{"a short run", bornAt(19, 2, []int64{1, 2}), "of step 19"},
		{"totals", whole, "totals by stack"},
		{"a snapshot by the clock", byTime, "has no step"},
		{"no births", bornAt(100, 2, []int64{snapshot.NoStep}), "does not record when its live blocks"},
		{"births before the record", recorded, "older than what the file records"},
		{"nothing live", bornAt(100, 2, nil), "does not record when its live blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := Inspect(c.s); len(a.Sites) > 0 || !strings.Contains(a.Why, c.says) {
				t.Errorf("%d sites, %q", len(a.Sites), a.Why)
			}
		})
	}
}

// TestFirstVerdictOfARecordingOfSomeSteps: a recorder that looks each fourth step, and
// later each eighth, writes what it saw with how many steps that stands for.
func TestFirstVerdictOfARecordingOfSomeSteps(t *testing.T) {
	const looks = 300
	for _, p := range agesPatterns {
		t.Run(p.name, func(t *testing.T) {
			alarms, seen := 0, 0
			for look := range uint64(looks) {
				r := rand.New(rand.NewPCG(8, look))
				n := 400 + r.Int64N(600)
				var births, count []int64
				for _, b := range p.births(r, n) {
					every := int64(4)
					if b > n/2 {
						every = 8
					}
					if b%every == 0 {
						births, count = append(births, b), append(count, every)
					}
				}
				if births == nil {
					continue
				}
				s := bornAt(n, 3, births)
				s.Blocks.Count = count
				seen++
				if site := Inspect(s).Sites[0]; site.Verdict == Leak {
					alarms++
					if !site.Sampled || !strings.Contains(strings.Join(site.Reasons, "; "), "estimates") {
						t.Fatalf("a verdict from estimates does not say so: %q", site.Reasons)
					}
				}
			}
			share := float64(alarms) / float64(seen)
			t.Logf("called a leak in %.1f %% of %d looks", 100*share, seen)
			// Of what is born each few steps so few looks see a fraction, at no even distances.
			if p.leaks && share < 0.3 || !p.leaks && share > p.alarms+0.02 {
				t.Errorf("called a leak in %.1f %% of %d looks", 100*share, seen)
			}
		})
	}
}

func TestFirstVerdictGivesRates(t *testing.T) {
	got := Inspect(bornAt(100, 2, times(50, func(i int64) int64 { return 2 * i }))).Sites[0]
	if got.Rate.Blocks.Value != 0.5 || got.Rate.Bytes.Value != 256 || got.Distinct != 50 || got.First != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFirstVerdictTellsWhoHolds(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		blocks     int64
		want       bool
	}{
		{"a list may hold many blocks", "list", 50, true},
		{"a variable holds one", "variable", 1, true},
		{"a variable does not hold many", "variable", 50, false},
		{"nor does an attribute", "attribute", 50, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bornAt(100, 2, times(c.blocks, func(i int64) int64 { return 2 * i }))
			if holder := Inspect(s).Sites[0].Holder; holder != nil {
				t.Fatalf("nobody looked, and %+v holds them", holder)
			}
			s.Holders = []snapshot.Holder{{Stack: s.Sites()[0].Stack, Path: "history", Kind: c.kind}}
			if got := Inspect(s).Sites[0].Holder; (got != nil) != c.want {
				t.Errorf("held by %+v", got)
			}
		})
	}
}

// TestTheOrderOfEventsIsAnAge: a trace without times has no steps either, so that no site is called a leak.
func TestTheOrderOfEventsIsAnAge(t *testing.T) {
	var list []block
	for range 40 {
		list = append(list, block{"x", 512, snapshot.NoStep})
	}
	s := build(snapshot.NoStep, list...)
	s.Blocks.BirthStep, s.History.Events = nil, 400
	for i := range s.Blocks.Size {
		s.Blocks.BirthEvent = append(s.Blocks.BirthEvent, int64(1+10*i))
	}
	a := Inspect(s)
	if a.Unit != "event" || a.To != 400 || len(a.Sites) != 1 || a.Sites[0].Pattern != Throughout || a.Sites[0].Verdict != Inconclusive {
		t.Fatalf("%+v", a)
	}
	if why := strings.Join(a.Sites[0].Reasons, "; "); !strings.Contains(why, "40 distinct events, evenly over the 400 events") {
		t.Error(why)
	}
}

// TestARecordWithoutTimesMakesNoBlockOld: older PyTorch's traces tell the order of events alone.
func TestARecordWithoutTimesMakesNoBlockOld(t *testing.T) {
	s := build(40, block{"x", 512, snapshot.NoStep})
	s.Blocks.BirthStep, s.History.Events = nil, 100
	if why := Inspect(s).Why; why != "the file records allocations without their times, and not in one order" {
		t.Error(why)
	}
	s.History.First = time.Unix(1000, 0)
	if why := Inspect(s).Why; !strings.Contains(why, "older than what the file records") {
		t.Error(why)
	}
}
