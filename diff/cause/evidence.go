package cause

import "github.com/memdiag/memdiag/snapshot"

// Evidence is what a finding shows of its cause. Unknown fields are zero.
type Evidence struct {
	Sites   []Site // sites that grow together, the one that grew most first
	Leaking bool   // the verdict is leak or inconclusive
	Settled bool   // the verdict is bounded

	Driver Driver
	Shape  Shape
	// Backward: whether anything in the run shows that gradients were computed.
	Backward Answer
	// Head: whether the program holds a value that is recreated at each event, in the function that allocates the
	// sites' blocks: the end of a graph that it extends.
	Head Answer
	// Drained: whether the oldest blocks are freed while younger ones gather, as in a queue.
	Drained Answer
	// Host: the sites are on the host's heap, in a run with another device.
	Host bool
	// Objects: the sites are on the heap of a language, which has objects and no tensors.
	Objects bool
	// Plain: the program is not Python, and nothing in it trains.
	Plain bool
	// NoTensors: the program is known to have no tensors, such as a Python program that has not imported PyTorch.
	NoTensors bool
	// Programs: the sites are compiled programs.
	Programs bool
	// Segments: the sites are named segments of shared memory.
	Segments bool
	// CollectorOff: the program is Python, and its cycle collector is off.
	CollectorOff bool
	// Graph: the sites grow in step, like the saved tensors of one autograd graph.
	Graph bool
	// Nodes: the sites' holder also retains an autograd graph that grows with them.
	Nodes bool
	// Native: no holder of the sites' objects was found, and the process's own memory grows in proportion.
	Native bool
	// Meter is the meter that grew; a finding of a meter has no sites.
	Meter Meter
}

// Site is one stack of a finding.
type Site struct {
	Frames []snapshot.Frame // innermost first
	// Common: for each frame, whether most other stacks of the run have it, so that it says nothing about this one.
	// Nil if it applies to none.
	Common   []bool
	Headline int             // index into Frames; -1 if no frame is the user's
	Owners   snapshot.Owners // classes only
	Lost     bool            // most of its blocks are lost: nothing in the program can free them
	Holders  []snapshot.Holder
	// TakenIn: a holder has grown, with as many of the blocks per item as before.
	TakenIn bool
	Live    int64 // blocks in the later snapshot
	// Blocks and Requested are the growth.
	Blocks    int64
	Requested snapshot.Bytes
	// Private: its blocks are in a private pool, such as that of a CUDA graph.
	Private bool
}

// Driver is what growth follows.
type Driver string

// What growth may follow.
const (
	Steps       Driver = "step"       // every step, or every so many
	Epochs      Driver = "epoch"      // ends of epochs
	Evaluations Driver = "evaluation" // phases that evaluate
	Checkpoints Driver = "checkpoint" // phases that save
	Irregular   Driver = "irregular"  // steps without a rule
)

// Shape is the form of growth.
type Shape string

// Shapes of growth. Linear growth has none.
const (
	Quadratic Shape = "quadratic"  // each step adds more than the one before
	BytesOnly Shape = "bytes only" // blocks are replaced by larger ones
	Doubling  Shape = "doubling"   // blocks are replaced by ones that are larger by a constant factor
)

// Answer is yes, no or unknown.
type Answer uint8

// Answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// Meter is a meter that grew without a stack.
type Meter string

// Meters that grow on their own.
const (
	PendingFree   Meter = "pending"    // freed by the program, still in use by a stream
	PrivatePool   Meter = "private"    // reserved for a graph's own pool
	CacheGrowth   Meter = "cached"     // reserved and free, in blocks as large as those that were requested
	Fragmentation Meter = "fragmented" // reserved and free, in pieces
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

// owners returns all owner classes of all sites.
func (e *Evidence) owners() snapshot.Owners {
	var all snapshot.Owners
	for i := range e.Sites {
		all |= e.Sites[i].Owners
	}
	return all
}

// each is the requested size of a new block: the mean of each site, weighted by the site's bytes, so that small blocks beside large
// ones do not make these small. It is 0 if there are no new blocks.
func (e *Evidence) each() snapshot.Bytes {
	var all, weighted float64
	for i := range e.Sites {
		if s := &e.Sites[i]; s.Blocks > 0 && s.Requested > 0 {
			bytes := float64(s.Requested)
			all += bytes
			weighted += bytes * bytes / float64(s.Blocks)
		}
	}
	if all == 0 {
		return 0
	}
	return snapshot.Bytes(weighted / all)
}
