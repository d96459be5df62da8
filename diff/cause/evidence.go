package cause

import "github.com/memdiag/memdiag/snapshot"

// Evidence is what a finding shows of its cause. What is not known is left zero.
type Evidence struct {
	Sites   []Site // that grow together, the one that grew most first
	Leaking bool   // the verdict is leak, or inconclusive, and may be one
	Settled bool   // the verdict is bounded

	Driver Driver
	Shape  Shape
	// Backward says whether anything in the run shows that a gradient was computed.
	Backward Answer
	// Head says whether the program holds a value that is recreated at each event in
	// the function where the sites' blocks are born: the end of a graph that it
	// carries on.
	Head Answer
	// Drained says whether the oldest blocks are gone, while younger ones gather: somebody
	// takes them out in their order, as out of a queue.
	Drained Answer
	// Host: the sites are on the host's heap, in a run that has another device.
	Host bool
	// Objects: the sites are on the heap of a language, which has objects and no tensors.
	Objects bool
	// Plain: the program is none of Python's, and nothing in it trains.
	Plain bool
	// NoTensors: the program is known to have none, such as one of Python's that has not imported PyTorch.
	NoTensors bool
	// Programs: the sites are programs that were compiled.
	Programs bool
	// Segments: the sites are named segments of shared memory.
	Segments bool
	// CollectorOff: the program is Python's, and its collector of cycles does not run.
	CollectorOff bool
	// Graph: the sites grow in step as what one autograd graph saves does.
	Graph bool
	// Nodes: what holds the sites keeps a graph of autograd's that grows with them.
	Nodes bool
	// Native: nothing was found to hold the sites' objects, and the process's own memory grows in proportion.
	Native bool
	// Meter is the meter that grew; a finding of a meter has no sites.
	Meter Meter
}

// Site is one stack of a finding.
type Site struct {
	Frames []snapshot.Frame // innermost first
	// Common has an element for each frame: most other stacks of the run run through
	// it, so that it tells nothing of this one. Nil for none.
	Common   []bool
	Headline int             // index into Frames; -1 where no frame is the user's
	Owners   snapshot.Owners // classes alone
	Lost     bool            // most of its blocks are lost: nothing in the program can release them any more
	Holders  []snapshot.Holder
	// TakenIn: a holder has become longer, and has as many of the blocks for each item as before.
	TakenIn bool
	Live    int64 // blocks, in the later snapshot
	// Blocks and Requested are the growth.
	Blocks    int64
	Requested snapshot.Bytes
	// Private: its blocks lie in a pool of their own, as those of a CUDA graph do.
	Private bool
}

// Driver is what growth follows.
type Driver string

// What growth may follow.
const (
	Steps       Driver = "step"       // every step, or every so many
	Epochs      Driver = "epoch"      // their ends
	Evaluations Driver = "evaluation" // it grows in a phase that evaluates
	Checkpoints Driver = "checkpoint" // or one that saves
	Irregular   Driver = "irregular"  // steps with no rule
)

// Shape is how growth goes on.
type Shape string

// Shapes of growth. A line has none of them.
const (
	Quadratic Shape = "quadratic"  // each step adds more than the one before
	BytesOnly Shape = "bytes only" // blocks are replaced by larger ones
	Doubling  Shape = "doubling"   // the same, each by the same factor
)

// Answer is yes, no or unknown.
type Answer uint8

// Answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// Meter is what grew where no stack did.
type Meter string

// Meters that grow on their own.
const (
	PendingFree   Meter = "pending"    // freed by the program, still in use by a stream
	PrivatePool   Meter = "private"    // reserved for a graph's own pool
	CacheGrowth   Meter = "cached"     // reserved, free, in blocks as large as what was asked for
	Fragmentation Meter = "fragmented" // reserved, free, in pieces
	UnsplitWaste  Meter = "unsplit"    // allocated beyond what was requested
	Host          Meter = "host"       // the process's own memory
)

// when is the kind of finding that an entry is for.
type when uint8

const (
	leaking when = iota
	settled
	metered
	either   // leaking or settled
	anything // leaking or metered
)

func (w when) holds(e *Evidence) bool {
	switch w {
	case settled:
		return e.Settled && len(e.Sites) > 0
	case metered:
		return e.Meter != ""
	case either:
		return (e.Settled || e.Leaking) && len(e.Sites) > 0
	case anything:
		return e.Meter != "" || e.Leaking && len(e.Sites) > 0
	}
	return e.Leaking && len(e.Sites) > 0
}

// owners are all classes of all sites.
func (e *Evidence) owners() snapshot.Owners {
	var all snapshot.Owners
	for i := range e.Sites {
		all |= e.Sites[i].Owners
	}
	return all
}

// each is the requested size of a new block, on the average; 0 where none is new.
func (e *Evidence) each() snapshot.Bytes {
	var blocks int64
	var bytes snapshot.Bytes
	for i := range e.Sites {
		blocks += e.Sites[i].Blocks
		bytes += e.Sites[i].Requested
	}
	if blocks <= 0 {
		return 0
	}
	return bytes / snapshot.Bytes(blocks)
}
