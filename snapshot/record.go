package snapshot

// Record is the sequence of events of one device's allocator.
type Record struct {
	Device  int // among Snapshot.Devices
	Events  []Event
	Streams []uint64 // by Event.Stream
	// Retries are the places of the segments and failures for which the allocator had emptied its cache first, in order.
	Retries []int
}

// EventKind is what an allocator did.
type EventKind uint8

// Kinds of events.
const (
	EventOther EventKind = iota
	EventAlloc
	EventFreeRequested
	EventFreeCompleted
	EventSegmentAlloc
	EventSegmentFree
	EventSegmentMap
	EventSegmentUnmap
	EventOOM // Address is what the driver had left
)

// Event is one event of a record, in 16 bytes: a long record has ten million.
type Event struct {
	Address uint64
	packed  uint64
}

// What packed holds, from its lowest bit on: bytes, kind, stream.
const (
	eventBytesBits  = 50
	eventKindBits   = 4
	eventStreamBits = 64 - eventBytesBits - eventKindBits
)

// MaxEventStreams is how many streams events can distinguish.
const MaxEventStreams = 1 << eventStreamBits

// MaxEventBytes is the largest size that an event can have.
const MaxEventBytes Bytes = 1<<eventBytesBits - 1

// NewEvent makes an event. The stream is below MaxEventStreams, and the size at most MaxEventBytes.
func NewEvent(kind EventKind, address uint64, size Bytes, stream int) Event {
	return Event{address, uint64(size) | uint64(kind)<<eventBytesBits | uint64(stream)<<(eventBytesBits+eventKindBits)}
}

// Kind is what was done.
func (e Event) Kind() EventKind {
	return EventKind(e.packed >> eventBytesBits & (1<<eventKindBits - 1))
}

// Bytes is the size that the event names: requested for blocks.
func (e Event) Bytes() Bytes { return Bytes(e.packed & (1<<eventBytesBits - 1)) }

// Stream is the place of the event's stream in Record.Streams.
func (e Event) Stream() int { return int(e.packed >> (eventBytesBits + eventKindBits)) }

// AllocatorConf is how PyTorch's allocator was configured.
type AllocatorConf struct {
	Text       string // of PYTORCH_CUDA_ALLOC_CONF
	MaxSplit   Bytes  // 0 for no limit
	Expandable bool
}
