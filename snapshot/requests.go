package snapshot

import "fmt"

// HoldRequests limits requested sizes to the sizes of their blocks, since no allocator gives less than was requested, and adds a note
// with the number of such blocks.
func (s *Snapshot) HoldRequests() {
	b := &s.Blocks
	more := 0
	for i, asked := range b.Requested {
		if asked > b.Size[i] {
			b.Requested[i] = b.Size[i]
			more++
		}
	}
	if more == 0 {
		return
	}
	s.Notes = append(s.Notes, fmt.Sprintf("requests for more than their blocks have: %s; not believed, the sizes given are taken", Grouped(int64(more))))
}
