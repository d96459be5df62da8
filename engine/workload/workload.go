// Package workload is the labelled corpus: small training programs on the engine
// that leak on one line each, or look as if they did, and ordinary trainings on real
// data.
//
// A workload declares what a run of it must show: what grows, how fast, on which
// line, who holds it. That is what memdiag's findings are held against. Sizes, rates
// and starts are drawn by seed, so that nobody can find leaks by knowing them.
package workload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// Workload is one program of the corpus and what is known of it.
type Workload struct {
	ID    string // "L30"
	Alias string // "feature-pyramid"
	Title string
	Label Label
	// Families are the kinds of training that it stands for, if any.
	Families []Family
	// Ranks is how many devices train together; 0 for one.
	Ranks int
	Cause string // id in the catalogue of causes; "" where there is nothing to explain
	// Truth is what a run with this seed must show.
	Truth func(seed int64) Truth
	// Bounds are what the program says of memory that it means to gather; nil for a
	// program that says nothing.
	Bounds func(seed int64) []snapshot.Bound
	// New starts the program: its parameters are made on the device. An error
	// leaves nothing on it.
	New func(Config) (Instance, error)
}

// Label is the truth about a workload.
type Label string

// The labels.
const (
	Leak    Label = "leak"
	Bounded Label = "bounded" // held longer than needed, or rises and stops
	Clean   Label = "clean"
)

// Family is a kind of training in which memory is hard to judge.
type Family string

// The families.
const (
	Distributed   Family = "distributed"
	LongSequences Family = "long sequences"
	DynamicGraphs Family = "dynamic graphs"
	LargeImages   Family = "large images"
)

// Config is how a workload runs. Equal configurations on one backend compute
// equal losses, to the bit.
type Config struct {
	Seed int64 // of parameters, data and all that is drawn
	// Fixed is the variant that does not leak; it computes the same. A workload that
	// is no leak has none, and is the same with it.
	Fixed   bool
	Device  *mem.Device
	Kernels engine.Kernels // of the device's driver
	// Peers are the other ranks of a workload with Ranks, that many less one.
	Peers []Peer
}

// Peer is another rank's device, with kernels of its own.
type Peer struct {
	Device  *mem.Device
	Kernels engine.Kernels
}

// Instance is a workload under way, for one goroutine.
type Instance interface {
	// Step trains one step and returns when the device has finished. After an error
	// the temporaries are gone, and the instance can be closed.
	Step() (train.Metrics, error)
	// Model is the program's own object, for train.Holders.
	Model() any
	// Close releases everything, what was leaked included.
	Close() error
}

// Phased is an Instance that does more than train, such as evaluate after each
// epoch.
type Phased interface {
	Phases() []train.Phase
}

// Hosted is an Instance that keeps memory of the host beside the device's, and
// accounts for it: on a device of its own, which it closes. Whoever records should
// read it as any other. It is nil where there is nothing to account for.
type Hosted interface {
	Host() *mem.Device
}

// Counter is an Instance that counts what adds to the growth with this marker,
// until now. Those that are not Counters add in each step.
type Counter interface {
	Count(marker string) Count
}

// Measurer is an Instance that computes more than losses, such as metrics: here
// they are, in the order in which they were computed. They are the same in the
// repaired program, to the bit.
type Measurer interface {
	Measured() []float64
}

// Summarizer is an Instance that has something to say of its training, such as how
// well it came out: "test accuracy 0.97". It computes on the device.
type Summarizer interface {
	Summary() (string, error)
}

// DeclaredBounds are what a run with this seed says that it means to gather.
func (w Workload) DeclaredBounds(seed int64) []snapshot.Bound {
	if w.Bounds == nil {
		return nil
	}
	return w.Bounds(seed)
}

// All lists the corpus by id, leaks first, and after it the trainings on real
// data.
func All() []Workload {
	corpus := slices.Concat(
		lossHistories(), recurrentNets(), forwardChains(), hookedNets(), metricPrograms(), outputPrograms(),
		caches(), checkpointPrograms(), []Workload{featurePyramid()}, banks(), replays(), optimizers(), steadyPrograms(), registryNets(), backwardPrograms(), workspacePrograms(),
		graphPrograms(), lazyPrograms(), queues(), rebuilds(), sequences(), distributedPrograms(),
	)
	slices.SortFunc(corpus, func(a, b Workload) int {
		if a.ID[0] != b.ID[0] {
			return strings.Compare(b.ID, a.ID)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return append(corpus, readDigits())
}

// Find returns the workload with this id or alias, in either case.
func Find(name string) (Workload, error) {
	for _, w := range All() {
		if strings.EqualFold(name, w.ID) || strings.EqualFold(name, w.Alias) {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("there is no workload %q", name)
}
