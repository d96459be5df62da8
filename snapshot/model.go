// Package snapshot is the model of a training process's device memory: what
// every allocator held, block by block, at one step boundary.
//
// A snapshot holds columns and interned stacks, not a tree of maps, so that a
// million blocks are a few dozen MB. Readers for files live below this package;
// package files opens any of them by content.
package snapshot

import (
	"slices"
	"time"
)

// Snapshot is the state of every device allocator of one process at one mark.
type Snapshot struct {
	Mark     Mark
	Rank     int    // of a distributed run; NoRank where the producer has none
	Producer string // who wrote it: "memdiag engine", "PyTorch"
	// Role and PID are the process, where its recorder tells them. Our own file does not keep them.
	Role    string
	PID     int
	Devices []Device
	// Segments are sorted by device, then address; the blocks of a segment are
	// the contiguous rows FirstBlock … FirstBlock+NumBlocks-1, by address.
	Segments []Segment
	Blocks   Blocks
	Stacks   *Stacks
	Holders  []Holder
	// At is where the program's threads were when the snapshot was taken; nil where nobody
	// looked. Our own file does not keep it.
	At []StackID
	// Anew is the stacks whose blocks become larger, and were never made of the one before: their size is the input's. Our own
	// file does not keep it.
	Anew []StackID
	// Native is the stack of the line at which memory outside the language grows, as that of a C extension; nil if unknown. Our own file
	// does not keep it.
	Native []StackID
	// Events counts what has happened until then, by name: epochs, phases that have begun, checkpoints. Our own file does not keep it.
	Events map[string]int64
	// AwaitsSteps: it was taken by the clock, and the program's own text takes steps, none of which has come. Our own file does not keep it.
	AwaitsSteps bool
	// Waited is how long the main thread had waited for a processor by then, in all; 0 where unknown. Our own file does not keep it.
	Waited  time.Duration
	History History
	// Moment is where within its record it shows memory; nil for the end, where it was taken. Our own file does not keep it.
	Moment *Moment
	// Timelines are those of devices whose record was asked for. Our own file does not keep them.
	Timelines []*Timeline
	// Records are those of devices whose events were asked for. Our own file does not keep them.
	Records []*Record
	// Allocator is how PyTorch's allocator was configured; nil where the file does not say. Our own file does not keep it.
	Allocator *AllocatorConf
	// SamplePeriod is in how many bytes of allocations a profiler recorded about one
	// allocation; 0 where it recorded all. Figures are then estimates.
	SamplePeriod Bytes
	// Notes say what is missing or does not add up, one sentence each.
	Notes []string
}

// What a mark or a block does not know.
const (
	NoStep  int64 = -1
	NoRank        = -1
	Unknown Bytes = -1
)

// Mark is a barrier between two steps: temporaries are gone, and marks of equal
// phase can be compared.
type Mark struct {
	Step int64 // steps completed; NoStep where unknown
	// StepCounted: nobody told the step; it is how many the recording saw since it
	// began.
	StepCounted bool
	Epoch       int64  // NoStep where unknown
	Phase       string // "train", "eval", …; "" where unknown
	// Covariates: what may rightly drive memory at this step; 0 where unknown.
	BatchElements  int64
	SequenceLength int64
	Time           time.Time // zero where unknown; in files, microseconds
}

// DeviceKind is the family of a device.
type DeviceKind string

// Kinds of device.
const (
	CPU    DeviceKind = "cpu"
	CUDA   DeviceKind = "cuda"
	Vulkan DeviceKind = "vulkan"
	// Executable stands for programs that JAX compiled; it does not tell where they are.
	Executable   DeviceKind = "executable"
	Process      DeviceKind = "host"   // the heap of the process itself
	PythonHeap   DeviceKind = "python" // and Python's, of what grew in it since the recording began
	SharedMemory DeviceKind = "shm"    // segments that have names, which outlive the process
	// Graph stands for autograd's nodes that one of the program's names keeps and that become
	// more; what they take is the process's memory, and nobody tells how much.
	Graph DeviceKind = "graph"
	// Items stands for the items of one container that becomes longer while the process grows; what they take is the
	// process's memory, too.
	Items DeviceKind = "items"
)

// WatchedProcesses is the name of the device of processes in which nothing is recorded: their memory is known in all.
const WatchedProcesses = "processes"

// InProcess reports whether a device is a part of the process's memory, beside others.
func (k DeviceKind) InProcess() bool { return k == CPU || k == PythonHeap || k == Graph || k == Items }

// Unsized reports whether a device's blocks may be of unknown size, so that they are judged by their number.
func (k DeviceKind) Unsized() bool { return k == Executable || k == Graph || k == Items }

// PinnedCounts is the name of a device of pinned memory of which the allocator's counts are known, and no blocks: the program's
// tensors in it are among those of the CPU.
const PinnedCounts = "pinned host memory, also in cpu:0"

// Device is one allocator's device and its meters.
type Device struct {
	Kind   DeviceKind
	Index  int
	Name   string // as the driver calls it; may be empty
	Limit  Bytes  // the cap at which allocation fails, of a Process what it has and what is left; Unknown where none is known
	Meters Meters
	// Peak is the most of allocated memory, of a Process of resident memory, that there has been, as the allocator or the
	// kernel says; 0 where neither does. Our own file does not keep it.
	Peak Bytes
	// Mapped, of a Process, is its private address space beyond what malloc has; 0 where it is not known. Our own file does not keep it.
	Mapped Bytes
	// Retries are how often the allocator found no memory and emptied its cache to try again. Our own file does not keep
	// them.
	Retries int64
	// OutOfMemory is how often it found none all the same, and Communicators are those of NCCL in the process; NCCL is what that
	// logged of its buffers. 0 where nothing tells. Our own file does not keep them.
	OutOfMemory, Communicators int64
	NCCL                       Bytes
}

// Meters are an allocator's own figures: requested <= allocated <= active <=
// reserved. Driver is the driver's (or the process's) figure, read apart from
// the allocator; Unknown where nobody gave one.
type Meters struct {
	Requested Bytes // what the program asked for, of live blocks
	Allocated Bytes // live blocks, rounded as the allocator rounds
	Active    Bytes // allocated, and freed but still in use by a stream
	Reserved  Bytes // segments taken from the driver
	Driver    Bytes
}

// Pool is the size class that a segment serves.
type Pool uint8

// The two pools of a PyTorch-like allocator.
const (
	LargePool Pool = iota
	SmallPool
)

func (p Pool) String() string {
	if p == SmallPool {
		return "small"
	}
	return "large"
}

// Segment is memory taken from the driver in one piece.
type Segment struct {
	Device     int    // index into Snapshot.Devices
	Address    uint64 // 0 where unknown: such segments are never taken for one another
	Size       Bytes
	Stream     uint64
	Pool       Pool
	Private    string // id of a private pool (CUDA graph, MemPool); "" for the shared one
	Expandable bool
	Stack      StackID
	FirstBlock int
	NumBlocks  int
}

// State is what a block is doing.
type State uint8

// States of a block.
const (
	Free    State = iota // cached, reusable
	Live                 // allocated to the program
	Pending              // freed by the program, still in use by a stream
)

func (s State) String() string { return [...]string{"free", "live", "pending"}[s] }

// Blocks are the pieces of all segments, one row a block, column by column.
// Segment, Address, Size, Requested, State and Stack have equal length; the
// other columns are nil where the producer did not know them.
//
// Heap profilers tell totals by stack, not blocks. A row is such a total where
// Count is set; Size and Requested are then those of its blocks together, and
// Address is 0.
type Blocks struct {
	Segment   []int32
	Address   []uint64
	Size      []Bytes
	Requested []Bytes // 0 for free blocks
	State     []State
	Stack     []StackID
	BirthStep []int64 // steps completed when it was allocated; NoStep where unknown
	BirthTime []int64 // Unix microseconds; 0 where unknown
	// BirthEvent is the place of its allocation among History.Events, from 1 on; 0 where unknown. It is nil unless
	// these are of one device and have no times.
	BirthEvent []int64
	Owners     []Owners
	Category   []Category
	Count      []int64 // blocks that the row stands for; nil where each is one, all 0 where the profiler counts none
}

// Len counts the rows.
func (b *Blocks) Len() int { return len(b.Size) }

// CountOf is how many blocks a row stands for: one where nobody counted.
func (b *Blocks) CountOf(row int) int64 {
	if b.Count == nil || b.Count[row] == 0 {
		return 1
	}
	return b.Count[row]
}

// Uncounted reports whether totals are of a profiler that counts no blocks, such as massif.
func (b *Blocks) Uncounted() bool {
	return len(b.Count) > 0 && !slices.ContainsFunc(b.Count, func(n int64) bool { return n > 0 })
}

// Owners is the set of classes that hold a reference on a block.
type Owners uint8

// Owner classes.
const (
	OwnedByUser  Owners = 1 << iota // a tensor handle in the program
	OwnedByTape                     // saved by the autograd graph for backward
	OwnedByGrad                     // a gradient
	OwnedByOptim                    // optimizer state
	OwnedByCache                    // a cache of the engine
	OwnedByComm                     // a collective's buffer
	// Lost is no class but what became of one: a handle was collected while it held its
	// reference, so that nothing in the program can ever release the block.
	Lost
)

var ownerNames = [...]string{"user", "tape", "grad", "optim", "cache", "comm", "lost"}

// Names lists the classes in the set, and "lost".
func (o Owners) Names() []string {
	var names []string
	for i, n := range ownerNames {
		if o&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// OwnersNamed is the set of the classes with these names; not ok where one is no class.
func OwnersNamed(names []string) (o Owners, ok bool) {
	for _, name := range names {
		i := slices.Index(ownerNames[:], name)
		if i < 0 {
			return 0, false
		}
		o |= 1 << i
	}
	return o, true
}

// Category is what a block is for. A block has one, whoever refers to it.
type Category uint8

// Categories.
const (
	NoCategory     Category = iota // not known
	Parameter                      // of a model
	Buffer                         // of a model: a running mean, a mask
	Gradient                       // of a parameter
	OptimizerState                 // moments, momentum
	Activation                     // computed by a forward pass, saved for backward or not
	Input                          // made by a loader of data
	Workspace                      // of a library's kernels, or needed within a backward pass or an optimizer's step only
	Collective                     // of communication
	CacheBlock                     // of a framework
)

var categoryNames = [...]string{"", "parameter", "buffer", "gradient", "optimizer state", "activation", "input", "workspace", "collective", "cache"}

// Categories is how many there are, NoCategory among them.
const Categories = len(categoryNames)

// String is the category's name; "" for none, and for a number that is none.
func (c Category) String() string {
	if int(c) >= Categories {
		return ""
	}
	return categoryNames[c]
}

// CategoryNamed is the category of that name; not ok where there is none.
func CategoryNamed(name string) (c Category, ok bool) {
	i := slices.Index(categoryNames[:], name)
	return Category(max(i, 0)), i > 0
}

// CategoryOf is what a block is for by its class of owner, where that tells; NoCategory of what the program holds itself.
func (o Owners) CategoryOf() Category {
	switch {
	case o&OwnedByOptim != 0:
		return OptimizerState
	case o&OwnedByGrad != 0:
		return Gradient
	case o&OwnedByComm != 0:
		return Collective
	case o&OwnedByCache != 0:
		return CacheBlock
	case o&OwnedByTape != 0 && o&OwnedByUser == 0:
		return Activation
	}
	return NoCategory
}

// Holder says what keeps a stack's blocks alive, where a recorder found it.
type Holder struct {
	Stack StackID
	Path  string // "FeaturePyramid.features", "__main__.history"
	// Kind is "list", "map", "attribute", "closure", "chain" of objects that refer to one another, "graph"
	// of autograd's after it, or Nodes.
	Kind  string
	Items int // length of the list or map, or bytes of the buffer, of all that the path names together; 0 where that has no meaning
	// Counted is the step at which Items were, before the snapshot's; 0 where it is
	// the snapshot's, or not known. Our own file does not keep it.
	Counted int64
	// Bound is how many items it may have, as the maxlen of a deque; 0 where nothing tells. Our own file
	// does not keep it.
	Bound int
	// Each is what an item takes that no other refers to; 0 where it is not known. Our own file does not keep it.
	Each Bytes
	// From is the stack that a recorder saw add an item; NoStack where it saw none. Our own file does not keep it.
	From StackID
}

// Noun is what a holder's Items are: bytes of a buffer, else items.
func (h *Holder) Noun() string {
	switch {
	case h == nil:
	case h.Kind == "bytearray" || h.Kind == "array.array" || h.Kind == "BytesIO":
		return "byte"
	case h.Kind == "StringIO":
		return "character"
	}
	return "item"
}

// Nameless is the Path of a graph of autograd's, or of objects on a language's heap, where nothing that has a name leads
// to it, as far as the recorder saw.
const Nameless = "(no name leads to it)"

// Nodes is the Kind of what keeps a graph of autograd's that grows, with the stack of its nodes on
// the device Graph, or of no block. Items are how many it has at least.
const Nodes = "nodes"

// History says how far back the producer's record of allocations reaches.
type History struct {
	Events    int64     // allocator events seen in the file
	First     time.Time // of the oldest event; zero where there is none
	Last      time.Time
	LostFrees int64    // frees whose allocation is not in the record
	Refused   *Refused // the last request for memory that failed; nil for none. Our own file does not keep it
	// Process is the one whose record this is, where the snapshot holds nothing but what
	// was allocated in the record; "" where it holds older blocks as well.
	Process string
}
