package workload

import (
	"embed"
	"fmt"
	"math/bits"
	"path"
	"regexp"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Truth is what a run of a workload must show. It depends on the seed, as the run
// does.
type Truth struct {
	// Steps is how long a run must be to show it: what has an end has come to it in
	// the first half, but for what is declared to gather; see Workload.Bounds.
	Steps int64
	// Growth has one entry for each line whose blocks grow in number or size: of a
	// leak those to be found, of another workload those that must not be called one.
	Growth []Growth
}

// Growth is what one line of a program leaves on the device; where there are
// several ranks, on all their devices together.
type Growth struct {
	// Marker names the guilty line by the comment that stands after it; see Line.
	// All blocks of the growth are allocated through it, and it lies in the function
	// that keeps them too long, which an engineer would change: where a helper
	// allocates, it is the call of the helper. It is no statement on what a detector
	// names.
	Marker string
	// Meter is where it shows.
	Meter Meter
	Event Event
	// Every is how many events pass for one that adds; at least 1.
	Every int64
	// First is the first step, or where Event is no step the first event, that adds;
	// at least 1.
	First int64
	// Blocks and Bytes are what is added each time: Bytes, as the program asks for
	// them, of all these blocks together, for each unit of Count.Units. A Shape that is
	// not Linear says how.
	Blocks int64
	Bytes  snapshot.Bytes
	// Unit names what Count.Units counts, such as rows; "" where every time adds the
	// same.
	Unit  string
	Shape Shape
	// Base is how often it was added before the first step.
	Base int64
	// Bound is the most that is ever live; zero for a leak. Until it is reached, no
	// less than half of it is live at some time.
	Bound Amount
	// Rest is the most that the repaired program keeps of the line, rightly.
	Rest Amount
	// Aside is what the growth also keeps from the first time on, of other lines:
	// the first input of a chain, the parameters that were replaced first.
	Aside Amount
	Owner snapshot.Owners // who holds most of the blocks
}

// Meter is a figure of a run that a growth moves.
type Meter string

// The meters.
const (
	// OnDevice: live blocks of the devices that train.
	OnDevice Meter = ""
	// OnHost: live blocks of the host's account; see Hosted. The devices that train
	// stay as they are.
	OnHost Meter = "host"
	// Reserved: segments that were taken for requests of the line, and that stay
	// reserved, while nothing more is live.
	Reserved Meter = "reserved"
)

// Amount is blocks and their bytes, as a program asks for them.
type Amount struct {
	Blocks int64
	Bytes  snapshot.Bytes
}

// Event is what growth follows.
type Event string

// The events.
const (
	PerStep       Event = "step"
	PerEpoch      Event = "epoch"
	PerEvaluation Event = "evaluation"
	PerEvaluated  Event = "evaluated batch"
	PerCheckpoint Event = "checkpoint"
	PerError      Event = "error"
	PerShape      Event = "shape"       // of input that was not seen before
	PerRebuild    Event = "replacement" // of the model, or of parts of it
	PerChance     Event = "chance"      // a rare branch that is taken at random
)

// Shape is how blocks and bytes follow from the number n of times that was added.
type Shape string

// The shapes.
const (
	// Linear: n times Blocks and Bytes.
	Linear Shape = "linear"
	// Quadratic: the n-th time adds n times Blocks and Bytes.
	Quadratic Shape = "quadratic"
	// BytesOnly: the same Blocks, n times Bytes.
	BytesOnly Shape = "bytes only"
	// Doubling: the same Blocks, Bytes times the least power of two not below n.
	Doubling Shape = "doubling"
)

// Count is what a program counts of one growth: how often it added, and how much
// in units of Growth.Bytes. Where every time adds the same, Units is Times.
type Count struct {
	Times, Units int64
}

// Live is what must be live for a count.
func (g Growth) Live(n Count) Amount {
	times, units := n.Times+g.Base, n.Units+g.Base
	switch {
	case times == 0:
		return Amount{}
	case g.Shape == Quadratic:
		triangle := times * (times + 1) / 2
		return Amount{triangle * g.Blocks, snapshot.Bytes(triangle) * g.Bytes}
	case g.Shape == BytesOnly:
		return Amount{g.Blocks, snapshot.Bytes(units) * g.Bytes}
	case g.Shape == Doubling:
		return Amount{g.Blocks, g.Bytes << bits.Len64(uint64(times-1))}
	}
	return Amount{times * g.Blocks, snapshot.Bytes(units) * g.Bytes}
}

// Times is how often a growth adds in so many events.
func (g Growth) Times(events int64) int64 {
	if events < g.First {
		return 0
	}
	return (events-g.First)/g.Every + 1
}

// Unbounded reports whether no bound is declared: the growth of a leak.
func (g Growth) Unbounded() bool { return g.Bound == Amount{} }

//go:embed *.go
var sources embed.FS

// markers are the comments that name lines: "//leak:L11/batch" after a line that
// leaks, "//held:D16" after one that only looks so. A line may have several, for
// programs that differ elsewhere: "//leak:L12 held:D16".
var markers = regexp.MustCompile(`//((?:(?:leak|held):[A-Z][0-9]+(?:/[a-z]+)? ?)+)$`)

// Line finds the line with a marker, named by what stands after the colon:
// "L11/batch". The file is named from the module's root, as stacks name it.
func Line(marker string) (file string, line int, err error) {
	places, err := markedLines()
	if err != nil {
		return "", 0, err
	}
	p, ok := places[marker]
	if !ok {
		return "", 0, fmt.Errorf("no line is marked %s", marker)
	}
	return p.file, p.line, nil
}

type place struct {
	file string
	line int
}

// markedLines finds every marker. It is an error if one names two lines.
func markedLines() (map[string]place, error) {
	entries, err := sources.ReadDir(".")
	if err != nil {
		return nil, err
	}
	places := make(map[string]place)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := sources.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		n := 0
		for l := range strings.Lines(string(text)) {
			n++
			found := markers.FindStringSubmatch(strings.TrimRight(l, "\r\n"))
			if found == nil {
				continue
			}
			for _, field := range strings.Fields(found[1]) {
				_, name, _ := strings.Cut(field, ":")
				if _, twice := places[name]; twice {
					return nil, fmt.Errorf("two lines are marked %s", name)
				}
				places[name] = place{path.Join("engine/workload", e.Name()), n}
			}
		}
	}
	return places, nil
}
