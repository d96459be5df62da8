package snapshot

import "time"

// Timeline is the history of one device's memory over the record of a snapshot: when each block was allocated and freed. Positions in
// the record count the device's own events, from 1 on.
type Timeline struct {
	Device int // among Snapshot.Devices
	Events int64
	// Lives are in the order of their births. Of a long record they are those that hold most bytes for most events; the rest is in
	// Bins.Folded.
	Lives  []Life
	Folded int64 // lives that are not among Lives
	// Bins cut the record evenly, BinEvents each, but for the last.
	Bins      []TimelineBin
	BinEvents int64
	Peak      Bytes // most bytes live at once
	PeakEvent int64 // the first event after which they were; 0 before the first
	Refused   []RefusedAt
	Steps     []int64 // the last event of each step, if the file has steps
}

// Life is one block from its allocation to its free.
type Life struct {
	Stack StackID // NoStack if the record has none
	Size  Bytes   // as requested
	Born  int64   // the event that allocated it; 0 before the record
	Died  int64   // the event after which it was free; 0 if it is live at the end
}

// TimelineBin is a stretch of the record.
type TimelineBin struct {
	Live     Bytes // most that was live in it
	Reserved Bytes // the most that was reserved in it
	Folded   Bytes // of lives that Timeline.Lives leaves out, at its end
	Time     time.Time
}

// RefusedAt is a request that failed.
type RefusedAt struct {
	Event int64
	Bytes Bytes
}
