package diff

import "github.com/memdiag/memdiag/snapshot"

// beforeTheEnd returns the run without its last snapshots if no agent took them, and processes were ending and had
// already freed a part of their memory: only chance decides whether there is such a late snapshot. It is nil if there
// is none.
func beforeTheEnd(run *snapshot.Run) *snapshot.Run {
	n := len(run.Snapshots)
	if n < fewestRises+endingLooks || run.Snapshots[n-1].Producer != hostProducer {
		return nil
	}
	part := *run
	for len(part.Snapshots) > n-endingLooks {
		last := len(part.Snapshots) - 1
		if float64(allocatedIn(part.Snapshots[last])) >= given*float64(allocatedIn(part.Snapshots[last-1])) {
			break
		}
		part.Snapshots = part.Snapshots[:last]
	}
	if len(part.Snapshots) == n {
		return nil
	}
	return &part
}

// allocatedIn is the total that the devices of a snapshot have allocated.
func allocatedIn(s *snapshot.Snapshot) (all snapshot.Bytes) {
	for i := range s.Devices {
		all += s.Devices[i].Meters.Allocated
	}
	return all
}
