package diff

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// clocked is a run that counts no steps, seen at so many seconds, of which each shows as
// many blocks of a stack as held tells.
func clocked(at []float64, held func(seconds float64) int) *snapshot.Run {
	var run snapshot.Run
	for _, x := range at {
		s := build(0, append(grown("w", 1, 512, snapshot.NoStep, 0), grown("x", held(x), 512, snapshot.NoStep, 0)...)...)
		s.Mark.Step, s.Mark.Time = snapshot.NoStep, time.Unix(1000, 0).Add(time.Duration(x*float64(time.Second)))
		run.Snapshots = append(run.Snapshots, s)
	}
	return &run
}

// TestAClockThatWasPutBackHidesNoLeak: the order of the snapshots is known, and the times are not.
func TestAClockThatWasPutBackHidesNoLeak(t *testing.T) {
	run := clocked([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, func(x float64) int { return int(100 * x) })
	for _, s := range run.Snapshots[5:] {
		s.Mark.Time = s.Mark.Time.Add(-time.Hour)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(r.Notes, "; "); r.Leaks() != 1 || r.Findings[0].Rate.Unit != Place || !strings.Contains(notes, "the clock was set back between snapshots 5 and 6: the run is judged by their order") {
		t.Errorf("%d leaks, notes %q", r.Leaks(), notes)
	}
}

// TestTheClockIsTheAxisWhereThereAreNoSteps looks at a leak of 100 blocks a second, and at
// what is none, at moments ever farther apart and otherwise uneven.
func TestTheClockIsTheAxisWhereThereAreNoSteps(t *testing.T) {
	uneven := []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 3.5}
	rng := rand.New(rand.NewPCG(1, 5))
	var thrown []float64
	for x := 0.0; len(thrown) < 20; x += rng.ExpFloat64() {
		thrown = append(thrown, x+0.01*float64(len(thrown)))
	}
	for _, c := range []struct {
		name string
		at   []float64
		held func(float64) int
		want Verdict
	}{
		{"a leak, most of it in the last interval", uneven, func(x float64) int { return int(100 * x) }, Leak},
		{"a leak seen at random moments", thrown, func(x float64) int { return int(100 * x) }, Leak},
		{"a cache that has filled", thrown, func(x float64) int { return int(100 * min(x, 4)) }, Bounded},
		{"work that begins in the last interval", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, func(x float64) int { return 4 + 100*int(x/11) }, Inconclusive},
		{"a list trimmed in batches", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, func(x float64) int { return 100 + 50*(int(x)%4) }, Bounded},
		{"one jump", uneven, func(x float64) int { return 10 + 100*int(min(1, x/0.8)) }, Bounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(clocked(c.at, c.held), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.Verdict != c.want || f.Rate.Unit != Second {
				t.Fatalf("%s, by the %s: %v; want %s", f.Verdict, f.Rate.Unit, f.Reasons, c.want)
			}
			if c.want == Leak && math.Abs(f.Rate.Blocks.Value-100) > 5 {
				t.Errorf("%.1f blocks a second; want 100", f.Rate.Blocks.Value)
			}
		})
	}
}

// TestGrowthByTheClockIsWeighed holds rates by the clock to floors, horizons and
// the device's limit.
func TestGrowthByTheClockIsWeighed(t *testing.T) {
	hours := make([]float64, 24)
	for i := range hours {
		hours[i] = 3600 * float64(i)
	}
	run := clocked(hours, func(x float64) int { return int(x / 360) }) // 512 B in 6 minutes
	for _, s := range run.Snapshots {
		s.Devices[0].Limit = snapshot.GiB
	}
	for _, c := range []struct {
		name string
		set  func(*Options)
		want Verdict
	}{
		{"a thousandth of a GiB is reached within a month", func(*Options) {}, Leak},
		{"and not within a day", func(o *Options) { o.Span = 24 * time.Hour }, Bounded},
		{"the horizon of steps is another matter", func(o *Options) { o.Horizon = 1 }, Leak},
		{"it is slower than a floor by the clock", func(o *Options) { o.MinRate = Growth{Bytes: 2, Unit: Second} }, Bounded},
		{"a floor by the step is another matter", func(o *Options) { o.MinRate = Growth{Bytes: 2, Unit: Step} }, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DefaultOptions()
			c.set(&o)
			r, err := o.Analyze(run)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.Verdict != c.want {
				t.Fatalf("%s: %v; want %s", f.Verdict, f.Reasons, c.want)
			}
			if c.want != Leak {
				return
			}
			room := float64(snapshot.GiB-r.Last.Devices[0].Meters.Reserved) * 360 / 512
			if at := f.RunsOut; at == nil || at.Step != snapshot.NoStep || !at.Beyond || room < Farthest*r.Series.Axis.Length() {
				t.Errorf("runs out %+v, after %.0f s; want that to be too far to tell", at, room)
			}
			if every := r.Least().Every; every < 360 {
				t.Errorf("the least leak is one block in %.0f s; this one comes in 360", every)
			}
		})
	}
}

func TestReasonsByTheClockTellTime(t *testing.T) {
	var at []float64
	for i := range 40 {
		at = append(at, 60*float64(i))
	}
	r, err := Analyze(clocked(at, func(x float64) int { return int(min(x, 1200) / 60) }), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Bounded || !strings.Contains(strings.Join(f.Reasons, " "), "19 minutes") && !strings.Contains(f.Reasons[0], "half-way") {
		t.Errorf("%s: %v", f.Verdict, f.Reasons)
	}
}

// TestABlockThatIsReplacedIsSeenTwiceAtTimes looks at an array that grows by copies of itself: at
// some marks by the clock the one before is still there.
func TestABlockThatIsReplacedIsSeenTwiceAtTimes(t *testing.T) {
	for _, c := range []struct {
		name string
		size func(i int) int
		want Verdict
	}{
		{"it grows", func(i int) int { return i }, Leak},
		{"it has stopped", func(i int) int { return min(i, 14) }, Bounded},
	} {
		var run snapshot.Run
		for i := range 29 {
			size := c.size(i)
			if i == 10 || i == 14 || i == 15 || i == 25 {
				size *= 2
			}
			s := build(0, block{"w", 512, snapshot.NoStep}, block{"x", 4096 + 1000*snapshot.Bytes(size), snapshot.NoStep})
			s.Mark.Step, s.Mark.Time = snapshot.NoStep, time.Unix(1000+int64(i), 0)
			run.Snapshots = append(run.Snapshots, s)
		}
		r, err := Analyze(&run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != c.want {
			t.Errorf("%s: %s: %v; want %s", c.name, f.Verdict, f.Reasons, c.want)
		}
	}
}

// A clock's marks are never quite as far apart as each other: nine that each show more are nine.
func TestMarksThatJitterAreNotOneStretch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 50 {
		var at []float64
		for i := range 9 {
			at = append(at, 9.08*float64(i)+0.05*rng.Float64())
		}
		held := []int{0, 14, 27, 38, 49, 56, 63, 69, 76} // of a server, in whose time requests come by chance
		r, err := Analyze(clocked(at, func(x float64) int { return held[int(math.Round(x/9.08))] }), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != Leak {
			t.Fatalf("%s: %v", f.Verdict, f.Reasons)
		}
	}
}

// numpy_concatenate, on a busy machine: most snapshots have the old array and the new one, the last has one.
func TestALastSnapshotBetweenTwoBlocksIsNoEndOfGrowth(t *testing.T) {
	at := []float64{0, 7.6, 11, 14.8, 18.1, 21.4, 24.7, 27.8, 31, 33.4, 36.7, 40, 43.2, 46.4, 49.8, 53.1, 56.4, 57.9, 61.1, 64.6, 67.6}
	kib := []snapshot.Bytes{0, 2560, 3314, 3874, 4751, 5752, 6675, 7051, 7667, 4697, 10767, 11267, 13196, 13725, 14261, 14541, 14825, 14941, 14941, 14941, 8167}
	var run snapshot.Run
	for i, x := range at {
		blocks := grown("w", 1, 512, snapshot.NoStep, 0)
		if kib[i] > 0 {
			blocks = append(blocks, block{"history", kib[i] << 10, snapshot.NoStep})
		}
		s := build(0, blocks...)
		s.Mark.Step, s.Mark.Time = snapshot.NoStep, time.Unix(1000, 0).Add(time.Duration(x*float64(time.Second)))
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(&run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Inconclusive || !strings.Contains(f.Reasons[0], "only the last value is low") {
		t.Errorf("%s: %q", f.Verdict, f.Reasons)
	}
}
