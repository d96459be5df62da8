package snapshot

import "fmt"

// HoldRequests takes back requests for more than their blocks have, as no allocator gives less than was asked for, and notes
// how many a file has.
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
