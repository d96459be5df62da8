package native

import (
	"fmt"

	"github.com/memdiag/memdiag/snapshot"
)

// check returns an error if a snapshot violates the model.
func check(s *snapshot.Snapshot) error {
	b := &s.Blocks
	n := b.Len()
	for _, column := range []struct {
		name     string
		rows     int
		optional bool
	}{
		{"segment", len(b.Segment), false},
		{"address", len(b.Address), false},
		{"requested", len(b.Requested), false},
		{"state", len(b.State), false},
		{"stack", len(b.Stack), false},
		{"birth step", len(b.BirthStep), b.BirthStep == nil},
		{"birth time", len(b.BirthTime), b.BirthTime == nil},
		{"birth event", len(b.BirthEvent), b.BirthEvent == nil},
		{"owners", len(b.Owners), b.Owners == nil},
		{"category", len(b.Category), b.Category == nil},
		{"count", len(b.Count), b.Count == nil},
	} {
		if column.rows != n && !column.optional {
			return fmt.Errorf("column %s has %d rows for %d blocks", column.name, column.rows, n)
		}
	}
	stacks := uint64(stackLen(s))
	row := 0
	for i := range s.Segments {
		seg := &s.Segments[i]
		switch {
		case seg.Device < 0 || seg.Device >= len(s.Devices):
			return fmt.Errorf("segment %d is on device %d of %d", i, seg.Device, len(s.Devices))
		case seg.Pool > snapshot.SmallPool:
			return fmt.Errorf("segment %d has pool %d", i, seg.Pool)
		case uint64(seg.Stack) >= stacks:
			return fmt.Errorf("segment %d has stack %d of %d", i, seg.Stack, stacks)
		case seg.NumBlocks < 0 || seg.NumBlocks > n-row:
			return fmt.Errorf("segment %d has %d blocks, with %d rows left", i, seg.NumBlocks, n-row)
		case seg.NumBlocks > 0 && seg.FirstBlock != row:
			return fmt.Errorf("segment %d begins at row %d, not at %d where the one before it ends", i, seg.FirstBlock, row)
		}
		for end := row + seg.NumBlocks; row < end; row++ {
			if int(b.Segment[row]) != i {
				return fmt.Errorf("block %d names segment %d and is a row of segment %d", row, b.Segment[row], i)
			}
		}
	}
	if row != n {
		return fmt.Errorf("%d blocks belong to no segment", n-row)
	}
	for i := range n {
		if b.State[i] > snapshot.Pending {
			return fmt.Errorf("block %d has state %d", i, b.State[i])
		}
		if uint64(b.Stack[i]) >= stacks {
			return fmt.Errorf("block %d has stack %d of %d", i, b.Stack[i], stacks)
		}
		if b.Category != nil && int(b.Category[i]) >= snapshot.Categories {
			return fmt.Errorf("block %d has category %d of %d", i, b.Category[i], snapshot.Categories)
		}
	}
	for i := range s.Holders {
		if uint64(s.Holders[i].Stack) >= stacks {
			return fmt.Errorf("holder %d has stack %d of %d", i, s.Holders[i].Stack, stacks)
		}
	}
	return nil
}
