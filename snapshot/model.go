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
	Rank     int    // rank in a distributed run; NoRank if the producer has none
	Producer string // who wrote it: "memdiag engine", "PyTorch"
	// Role and PID identify the process, if its recorder gives them. Our own file does not have them.
	Role    string
	PID     int
	Devices []Device
	// Segments are sorted by device, then address; the blocks of a segment are
	// the contiguous rows FirstBlock … FirstBlock+NumBlocks-1, by address.
	Segments []Segment
	Blocks   Blocks
	Stacks   *Stacks
	Holders  []Holder
	// At is where the program's threads were when the snapshot was taken; nil if not recorded. Our own file does not have it.
	At []StackID
	// Anew lists stacks whose blocks become larger without being made from the previous block: their size depends on the input. Our own
	// file does not have it.
	Anew []StackID
	// Native is the stack of the line at which memory outside the language grows, such as a C extension's; nil if unknown. Our own file
	// does not have it.
	Native []StackID
	// Events counts what has happened so far, by name: epochs, phases that began, checkpoints. Our own file does not have it.
	Events map[string]int64
	// AwaitsSteps: the snapshot was taken by time, and the program's code takes steps, but none has come yet. Our own file does not
	// have it.
	AwaitsSteps bool
	// Waited is how long the main thread had waited for a processor so far; 0 if unknown. Our own file does not have it.
	Waited  time.Duration
	History History
	// Moment is the moment in its record that the snapshot shows; nil for the end, when it was taken. Our own file does not have it.
	Moment *Moment
	// Timelines are those of the devices whose record was requested. Our own file does not have them.
	Timelines []*Timeline
	// Records are those of the devices whose events were requested. Our own file does not have them.
	Records []*Record
	// Allocator is the configuration of PyTorch's allocator; nil if unknown. Our own file does not have it.
	Allocator *AllocatorConf
	// SamplePeriod is the number of allocated bytes per recorded allocation of a sampling profiler; 0 if it recorded all. With samples,
	// figures are estimates.
	SamplePeriod Bytes
	// Notes say what is missing or inconsistent, one sentence each.
	Notes []string
}

// What a mark or a block does not know.
const (
	NoStep  int64 = -1
	NoRank        = -1
	Unknown Bytes = -1
)

// Mark is a point between two steps: temporaries are freed, and marks of equal phase can be compared.
type Mark struct {
	Step int64 // steps completed; NoStep if unknown
	// StepCounted: the program did not report the step; it is the number of steps since the recording began.
	StepCounted bool
	Epoch       int64  // NoStep if unknown
	Phase       string // "train", "eval", …; "" if unknown
	// Covariates: what may legitimately change memory at this step; 0 if unknown.
	BatchElements  int64
	SequenceLength int64
	Time           time.Time // zero if unknown; in files, microseconds
}

// DeviceKind is the family of a device.
type DeviceKind string

// Kinds of device.
const (
	CPU    DeviceKind = "cpu"
	CUDA   DeviceKind = "cuda"
	Vulkan DeviceKind = "vulkan"
	// Executable is for programs that JAX compiled, whose place is unknown.
	Executable   DeviceKind = "executable"
	Process      DeviceKind = "host"   // the heap of the process itself
	PythonHeap   DeviceKind = "python" // Python's heap, as far as it grew since the recording began
	SharedMemory DeviceKind = "shm"    // segments that have names, which outlive the process
	// Graph is for autograd nodes that one of the program's names retains and that increase. They take memory of the process, but how
	// much is unknown.
	Graph DeviceKind = "graph"
	// Items is for the items of one container that becomes longer while the process grows. They take memory of the process, too.
	Items DeviceKind = "items"
)

// WatchedProcesses is the name of the device of processes in which nothing is recorded: their memory is known in all.
const WatchedProcesses = "processes"

// InProcess reports whether a device is a part of the process's memory, beside others.
func (k DeviceKind) InProcess() bool { return k == CPU || k == PythonHeap || k == Graph || k == Items }

// Unsized reports whether a device's blocks may be of unknown size, so that they are judged by their number.
func (k DeviceKind) Unsized() bool { return k == Executable || k == Graph || k == Items }

// PinnedCounts is the name of a device of pinned memory with known allocator counts but no blocks: the program's tensors in it are
// among those of the CPU.
const PinnedCounts = "pinned host memory, also in cpu:0"

// Device is one allocator's device and its meters.
type Device struct {
	Kind   DeviceKind
	Index  int
	Name   string // as the driver calls it; may be empty
	Limit  Bytes  // the limit at which allocation fails; for a Process what it has plus what is left; Unknown if unknown
	Meters Meters
	// Peak is the highest allocated memory so far (for a Process, the highest resident memory), according to the allocator or the
	// kernel; 0 if unknown. Our own file does not have it.
	Peak Bytes
	// Mapped is the private address space of a Process beyond malloc's; 0 if unknown. Our own file does not have it.
	Mapped Bytes
	// Retries are how often the allocator found no memory and emptied its cache to try again. Our own file does not keep
	// them.
	Retries int64
	// OutOfMemory is how many times it still found no memory after that. Communicators are the NCCL communicators in the process, and
	// NCCL is the size of the buffers that NCCL logged. 0 if unknown. Our own file does not have them.
	OutOfMemory, Communicators int64
	NCCL                       Bytes
}

// Meters are an allocator's own figures: requested <= allocated <= active <= reserved. Driver is the driver's (or the process's)
// figure, read separately from the allocator; Unknown if not read.
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
	Address    uint64 // 0 if unknown: segments without an address are never matched
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

// Blocks are the pieces of all segments, one row per block, in columns. Segment, Address, Size, Requested, State and Stack have equal
// length; the other columns are nil if the producer did not know them.
//
// Heap profilers give totals by stack instead of blocks. If Count is set, a row is such a total; Size and Requested are then the sums
// over its blocks, and Address is 0.
type Blocks struct {
	Segment   []int32
	Address   []uint64
	Size      []Bytes
	Requested []Bytes // 0 for free blocks
	State     []State
	Stack     []StackID
	BirthStep []int64 // steps completed when it was allocated; NoStep if unknown
	BirthTime []int64 // Unix microseconds; 0 if unknown
	// BirthEvent is the index of its allocation in History.Events, from 1 on; 0 if unknown. It is nil unless all events are of one
	// device and have no times.
	BirthEvent []int64
	Owners     []Owners
	Category   []Category
	Count      []int64 // blocks in the row; nil if each row is one, all 0 if the profiler counts none
}

// Len counts the rows.
func (b *Blocks) Len() int { return len(b.Size) }

// CountOf is how many blocks a row stands for: one if blocks were not counted.
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
	// Lost is no class but a state: a handle was collected while it held its reference, so nothing in the program can ever release the
	// block.
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

// OwnersNamed is the set of the classes with these names; ok is false if one is no class.
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

// CategoryNamed is the category with that name; ok is false if there is none.
func CategoryNamed(name string) (c Category, ok bool) {
	i := slices.Index(categoryNames[:], name)
	return Category(max(i, 0)), i > 0
}

// CategoryOf is the category of a block by its class of owner, if that determines it; NoCategory for blocks that the program itself
// holds.
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

// Holder says what keeps a stack's blocks alive, if a recorder found it.
type Holder struct {
	Stack StackID
	Path  string // "FeaturePyramid.features", "__main__.history"
	// Kind is "list", "map", "attribute", "closure", "chain" of objects that refer to one another, "graph"
	// of autograd's after it, or Nodes.
	Kind  string
	Items int // length of the list or map, or bytes of the buffer, summed over all that the path names; 0 if it has no length
	// Counted is the step at which Items were counted, if before the snapshot's; 0 if it is the snapshot's, or unknown. Our own file
	// does not have it.
	Counted int64
	// Bound is the most items it may have, such as the maxlen of a deque; 0 if unknown. Our own file does not have it.
	Bound int
	// Each is the size of an item without objects that are referenced elsewhere; 0 if unknown. Our own file does not have it.
	Each Bytes
	// From is the stack that a recorder saw add an item; NoStack for none. Our own file does not have it.
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

// Nameless is the Path of an autograd graph, or of objects on a language's heap, that nothing with a name leads to, as far as the
// recorder saw.
const Nameless = "(no name leads to it)"

// Nodes is the Kind of a holder of a growing autograd graph, with the stack of its nodes on the device Graph, or of no block. Items is
// the least number of nodes.
const Nodes = "nodes"

// History says how far back the producer's record of allocations reaches.
type History struct {
	Events    int64     // allocator events seen in the file
	First     time.Time // of the oldest event; zero if there is none
	Last      time.Time
	LostFrees int64    // frees without a recorded allocation
	Refused   *Refused // the last request for memory that failed; nil for none. Our own file does not keep it
	// Process is the process of the record, if the snapshot holds only what was allocated in the record; "" if it also holds older
	// blocks.
	Process string
}
