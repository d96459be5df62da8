// Package workload is the labelled corpus: small training programs on the engine,
// each of which leaks on one line, or looks as if it did; and ordinary ones on real
// data.
//
// A workload declares what a run of it must show: what grows, how fast, on which
// line, who holds it. That is what memdiag's findings are held against.
package workload

import (
	"embed"
	"fmt"
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
	// Event drives the growth: so many new blocks, and so many bytes, for each.
	Event  Event
	Blocks float64
	Bytes  snapshot.Bytes // as the program asks for them
	Owner  snapshot.Owners
	Cause  string // id in the catalogue of causes
	Source string // file of this package that the program is written in
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

// Event is what growth follows.
type Event string

// The events.
const (
	PerStep Event = "step"
)

// Config is how a workload runs. Equal configurations on one backend compute
// equal losses, to the bit.
type Config struct {
	Seed    int64 // of parameters and data
	Fixed   bool  // the variant that does not leak; it computes the same
	Device  *mem.Device
	Kernels engine.Kernels // of the device's driver
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

// Phased is an Instance that does more than train, such as evaluate behind each
// epoch.
type Phased interface {
	Phases() []train.Phase
}

// Summarizer is an Instance that has something to say of its training, such as how
// well it came out: "test accuracy 0.97". It computes on the device.
type Summarizer interface {
	Summary() (string, error)
}

// All lists the corpus by id, and behind it the trainings on real data.
func All() []Workload { return []Workload{featurePyramid(), readDigits()} }

// Find returns the workload with this id or alias, in either case.
func Find(name string) (Workload, error) {
	for _, w := range All() {
		if strings.EqualFold(name, w.ID) || strings.EqualFold(name, w.Alias) {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("there is no workload %q", name)
}

//go:embed *.go
var sources embed.FS

// marker ends the guilty line of a source.
const marker = "//leak:here"

// Guilty returns the line that is to be found, as stacks name it: the file from
// the module's root, and the number of the one line that ends with the marker
// comment. line is 0 where the source has none.
func (w Workload) Guilty() (file string, line int) {
	file = "engine/workload/" + w.Source
	text, err := sources.ReadFile(w.Source)
	if err != nil {
		return file, 0
	}
	n := 0
	for l := range strings.Lines(string(text)) {
		if n++; strings.HasSuffix(strings.TrimSpace(l), marker) {
			return file, n
		}
	}
	return file, 0
}
