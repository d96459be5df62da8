package workload_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// trial is one workload run for some steps, as the engine's ledger has it.
type trial struct {
	truth    workload.Truth
	training int // devices that train, which come before the host's
	// at holds the training barriers: the one before the first step, and one after
	// each.
	at       []barrier
	losses   []float64
	measured []float64
	last     *snapshot.Snapshot
	holders  []snapshot.Holder
}

// barrier is what the ledger says at one mark, and what the program has counted.
type barrier struct {
	mark   snapshot.Mark
	lines  []workload.Amount // of each growth of the truth
	counts []workload.Count
	rest   workload.Amount // all other live blocks
	events map[workload.Event]int64
}

// place is a line as stacks name it, and the meter on which its growth shows.
type place struct {
	file  string
	line  int
	meter workload.Meter
}

func runFor(t *testing.T, w workload.Workload, seed, steps int64, fixed bool) trial {
	t.Helper()
	devices := comm.Devices(max(1, w.Ranks), mem.Host(), mem.Options{})
	config := workload.Config{Seed: seed, Fixed: fixed, Device: devices[0], Kernels: cpu.New(1)}
	for _, d := range devices[1:] {
		config.Peers = append(config.Peers, workload.Peer{Device: d, Kernels: cpu.New(1)})
	}
	instance, err := w.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ledgers := devices
	if h, ok := instance.(workload.Hosted); ok && h.Host() != nil {
		ledgers = append(slices.Clone(devices), h.Host())
	}
	out := trial{truth: w.Truth(seed), training: len(devices)}
	lines := growthLines(t, out.truth)
	events := map[workload.Event]int64{}
	loop := train.Loop{Devices: ledgers}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
		for i, p := range loop.Phases {
			if done := p.Done; p.Name == train.Evaluating {
				loop.Phases[i].Done = func(m snapshot.Mark, loss float64) error {
					events[workload.PerEvaluation]++
					return done(m, loss)
				}
			}
		}
	}
	loop.OnBarrier(func(m snapshot.Mark) error {
		switch m.Phase {
		case train.Evaluating:
			events[workload.PerEvaluated]++
		case train.Checkpointing:
			events[workload.PerCheckpoint]++
		case train.Training:
			events[workload.PerStep] = m.Step
			out.last = mem.Take(m, ledgers...)
			b := readLedger(out.last, out.training, lines)
			b.events = map[workload.Event]int64{}
			for e, n := range events {
				b.events[e] = n
			}
			for i, g := range out.truth.Growth {
				if c, ok := instance.(workload.Counter); ok {
					b.counts[i] = c.Count(g.Marker)
				} else {
					n := g.Times(m.Step)
					b.counts[i] = workload.Count{Times: n, Units: n}
				}
			}
			out.at = append(out.at, b)
		}
		return nil
	})
	err = loop.Run(t.Context(), steps, func() (train.Metrics, error) {
		m, err := instance.Step()
		out.losses = append(out.losses, m.Loss)
		if m.EpochEnd {
			events[workload.PerEpoch]++
		}
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := instance.(workload.Measurer); ok {
		out.measured = m.Measured()
	}
	out.holders = train.Holders(instance.Model(), out.last, ledgers...)
	if err := instance.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	return out
}

// growthLines finds the line of each growth.
func growthLines(t *testing.T, truth workload.Truth) []place {
	t.Helper()
	var lines []place
	for _, g := range truth.Growth {
		file, line, err := workload.Line(g.Marker)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, place{file, line, g.Meter})
	}
	return lines
}

// readLedger sums up by the lines that memory was allocated through: live blocks of
// the devices that train, of the host's after them, or the segments that were
// taken, as the meter of each line has it.
func readLedger(s *snapshot.Snapshot, training int, lines []place) barrier {
	b := barrier{mark: s.Mark, lines: make([]workload.Amount, len(lines)), counts: make([]workload.Count, len(lines))}
	for _, site := range s.Sites() {
		into := &b.rest
		if i := lineOf(s, site.Stack, lines, meterOf(site.Device, training)); i >= 0 {
			into = &b.lines[i]
		}
		into.Blocks += site.Count
		into.Bytes += site.Requested
	}
	for _, segment := range s.Segments {
		if i := lineOf(s, segment.Stack, lines, workload.Reserved); i >= 0 {
			b.lines[i].Blocks++
			b.lines[i].Bytes += segment.Size
		}
	}
	return b
}

// meterOf is the meter of a device's live blocks.
func meterOf(device, training int) workload.Meter {
	if device >= training {
		return workload.OnHost
	}
	return workload.OnDevice
}

// lineOf is the line, of those that show on a meter, that a stack goes through; -1
// for none.
func lineOf(s *snapshot.Snapshot, stack snapshot.StackID, lines []place, on workload.Meter) int {
	for _, f := range s.Stacks.Frames(stack) {
		for i, l := range lines {
			if f.File == l.file && f.Line == l.line && on == l.meter {
				return i
			}
		}
	}
	return -1
}

// TestTheLedger holds every workload's truth against the engine's own account of
// its memory, at every barrier: no detector has a part in it.
func TestTheLedger(t *testing.T) {
	for _, w := range workload.All() {
		seeds := int64(ledgerSeeds)
		if reflect.DeepEqual(w.Truth(0), w.Truth(1)) {
			seeds = 1
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s seed %d", w.ID, seed), func(t *testing.T) {
				t.Parallel()
				steps := w.Truth(seed).Steps
				if w.ID == "L30" || w.ID == "digits" { // what has filters takes ten times as long a step
					steps = 24
				}
				run := runFor(t, w, seed, steps, false)
				run.eventsAreCounted(t)
				run.restStaysFlat(t)
				switch w.Label {
				case workload.Leak:
					run.growsAsDeclared(t)
					fixed := runFor(t, w, seed, steps, true)
					run.equals(t, fixed)
					fixed.staysWithinRest(t)
					fixed.settles(t)
				default:
					run.staysWithinBounds(t)
					if w.Bounds == nil {
						run.settles(t)
					}
					for _, b := range w.DeclaredBounds(seed) {
						run.keepsTo(t, b)
					}
				}
			})
		}
	}
}

// eventsAreCounted holds what the program counts against the marks of the run.
func (r trial) eventsAreCounted(t *testing.T) {
	t.Helper()
	for i, g := range r.truth.Growth {
		if g.Every < 1 || g.First < 1 || g.Blocks < 1 || g.Bytes < 1 || (g.Owner == 0) != (g.Meter == workload.Reserved) {
			t.Errorf("%s is declared as %+v", g.Marker, g)
		}
		for _, b := range r.at {
			if events, marked := b.events[g.Event]; marked && b.counts[i].Times != g.Times(events) {
				t.Fatalf("%s, step %d: the program has added %d times in %d of event %s, every %d from %d",
					g.Marker, b.mark.Step, b.counts[i].Times, events, g.Event, g.Every, g.First)
			}
		}
		if r.at[len(r.at)-1].counts[i].Times < 3 && g.Shape != workload.Doubling && r.truth.Growth[i].Unbounded() {
			t.Errorf("%s: %d steps add %+v only", g.Marker, r.truth.Steps, r.at[len(r.at)-1].counts[i])
		}
	}
}

// restStaysFlat: beside the lines declared, the second half of a run holds no more
// than the first, but for rings and pools of a few blocks that had not been full.
func (r trial) restStaysFlat(t *testing.T) {
	t.Helper()
	const filling = 12
	most := func(at []barrier) (blocks int64) {
		for _, b := range at {
			blocks = max(blocks, b.rest.Blocks)
		}
		return blocks
	}
	half := len(r.at) / 2
	if first, second := most(r.at[:half]), most(r.at[half:]); second > first+filling {
		t.Errorf("beside the lines declared, %d blocks in the first half, %d in the second", first, second)
	}
}

// growsAsDeclared: each line holds what the truth says, to the byte, and mostly
// by the owner that it names.
func (r trial) growsAsDeclared(t *testing.T) {
	t.Helper()
	for i, g := range r.truth.Growth {
		if !g.Unbounded() {
			t.Errorf("%s is of a leak, and has a bound", g.Marker)
		}
		for _, b := range r.at {
			if want := g.Live(b.counts[i]); b.lines[i] != want {
				t.Fatalf("%s, step %d: %+v is live, want %+v for %+v", g.Marker, b.mark.Step, b.lines[i], want, b.counts[i])
			}
		}
	}
	lines := growthLines(t, r.truth)
	held := make([]int, len(lines))
	all := make([]int, len(lines))
	for row, state := range r.last.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		device := r.last.Segments[r.last.Blocks.Segment[row]].Device
		if i := lineOf(r.last, r.last.Blocks.Stack[row], lines, meterOf(device, r.training)); i >= 0 {
			all[i]++
			if r.last.Blocks.Owners[row] == r.truth.Growth[i].Owner {
				held[i]++
			}
		}
	}
	for i, g := range r.truth.Growth {
		if 2*held[i] <= all[i] && all[i] > 1 || held[i] == 0 {
			t.Errorf("%s: %v holds %d of %d blocks", g.Marker, g.Owner.Names(), held[i], all[i])
		}
	}
}

// equals: the repaired program computes the same, to the bit, and holds the same
// but for the lines that leak.
func (r trial) equals(t *testing.T, fixed trial) {
	t.Helper()
	equalBits(t, "loss", r.losses, fixed.losses)
	equalBits(t, "metric", r.measured, fixed.measured)
	for step := range r.at {
		got, want := r.at[step].rest, fixed.at[step].rest
		aside := want
		for i, g := range r.truth.Growth {
			if r.at[step].counts[i].Times > 0 {
				aside.Blocks, aside.Bytes = aside.Blocks+g.Aside.Blocks, aside.Bytes+g.Aside.Bytes
			}
		}
		// The repaired program lets go of what is kept aside, but not always at once.
		if got != want && got != aside || step == len(r.at)-1 && got != aside {
			t.Fatalf("step %d: beside the lines that leak, %+v is live, and %+v would be in the repaired program", step, got, want)
		}
	}
}

func equalBits(t *testing.T, what string, a, b []float64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d values of %s, and %d in the repaired program", len(a), what, len(b))
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			t.Fatalf("%s %d is %g, and %g in the repaired program", what, i, a[i], b[i])
		}
	}
}

// staysWithinRest: what the repaired program keeps of the lines has an end.
func (r trial) staysWithinRest(t *testing.T) {
	t.Helper()
	for i, g := range r.truth.Growth {
		for _, b := range r.at {
			if got := b.lines[i]; got.Blocks > g.Rest.Blocks || got.Bytes > g.Rest.Bytes {
				t.Fatalf("%s, step %d: the repaired program holds %+v, at most %+v is declared", g.Marker, b.mark.Step, got, g.Rest)
			}
		}
	}
}

// staysWithinBounds: no line ever holds more than declared, and each does hold
// half of that at some time.
func (r trial) staysWithinBounds(t *testing.T) {
	t.Helper()
	for i, g := range r.truth.Growth {
		var most workload.Amount
		for _, b := range r.at {
			most.Blocks, most.Bytes = max(most.Blocks, b.lines[i].Blocks), max(most.Bytes, b.lines[i].Bytes)
			if want := g.Live(b.counts[i]); g.Meter == workload.Reserved && b.lines[i] != want {
				t.Fatalf("%s, step %d: %+v is reserved, want %+v", g.Marker, b.mark.Step, b.lines[i], want)
			}
		}
		if g.Unbounded() || most.Blocks > g.Bound.Blocks || most.Bytes > g.Bound.Bytes || 2*most.Blocks < g.Bound.Blocks || 2*most.Bytes < g.Bound.Bytes {
			t.Errorf("%s: at most %+v was live, the bound is %+v", g.Marker, most, g.Bound)
		}
	}
}

// keepsTo: what a program says that it means to gather is a function of its own
// that allocates, and no run goes beyond.
func (r trial) keepsTo(t *testing.T, b snapshot.Bound) {
	t.Helper()
	var live workload.Amount
	for _, site := range r.last.Sites() {
		if slices.ContainsFunc(r.last.Stacks.Frames(site.Stack), func(f snapshot.Frame) bool {
			return strings.HasSuffix(strings.NewReplacer("(*", "", ")", "").Replace(f.Function), "."+b.Where)
		}) {
			live.Blocks, live.Bytes = live.Blocks+site.Count, live.Bytes+site.Requested
		}
	}
	if live.Blocks == 0 || b.Blocks > 0 && live.Blocks > b.Blocks || b.Bytes > 0 && live.Bytes > b.Bytes {
		t.Errorf("%+v is live in %s, which is to hold %d blocks and %v at most", live, b.Where, b.Blocks, b.Bytes)
	}
}

// settles: what has an end comes to it in the first half of the run, or nobody could
// tell it from what has none. What goes up and down may go a little higher later.
func (r trial) settles(t *testing.T) {
	t.Helper()
	half := len(r.at)/2 + 1
	for i, g := range r.truth.Growth {
		if g.Meter == workload.Reserved {
			continue // no line of it is live, however long it rises
		}
		var first, second int64
		for step, b := range r.at {
			if step < half {
				first = max(first, b.lines[i].Blocks)
			} else {
				second = max(second, b.lines[i].Blocks)
			}
		}
		if second > first+max(2, first/5) {
			t.Errorf("%s: %d blocks at most in the first half, %d in the second", g.Marker, first, second)
		}
	}
}
