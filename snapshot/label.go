package snapshot

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// siteOf keys one block. Blocks without a stack are told apart by stream, pool
// and size, so that growth among them still shows.
func (s *Snapshot) siteOf(block int) (SiteKey, string) {
	seg := &s.Segments[s.Blocks.Segment[block]]
	stack := s.Blocks.Stack[block]
	if stack != NoStack {
		return SiteKey{seg.Device, s.Stacks.Hash(stack)}, ""
	}
	label := fmt.Sprintf("<no stack recorded> %s blocks, %s pool, stream %d", s.Blocks.Size[block], seg.Pool, seg.Stream)
	if seg.Private != "" {
		label += ", private pool " + seg.Private
	}
	return SiteKey{seg.Device, Hash(xxhash.Sum64String(label))}, label
}
