package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestTheEndOfProcessesWithoutAnAgentIsNoPartOfTheRun: whether a last snapshot came while they freed what they had decided the verdict.
func TestTheEndOfProcessesWithoutAnAgentIsNoPartOfTheRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		held     []snapshot.Bytes
		producer string
		want     int
	}{
		{"ends as it grew", []snapshot.Bytes{10, 20, 30, 40, 50, 60}, hostProducer, 6},
		{"frees at its end", []snapshot.Bytes{10, 20, 30, 40, 50, 5}, hostProducer, 5},
		{"frees in two looks", []snapshot.Bytes{10, 20, 30, 40, 30, 5}, hostProducer, 4},
		{"freed long before", []snapshot.Bytes{10, 50, 5, 5, 5, 5}, hostProducer, 6},
		{"with an agent", []snapshot.Bytes{10, 20, 30, 40, 50, 5}, "Python", 6},
		{"few", []snapshot.Bytes{10, 20, 5}, hostProducer, 3},
	} {
		run := &snapshot.Run{}
		for _, size := range c.held {
			run.Snapshots = append(run.Snapshots, &snapshot.Snapshot{Producer: c.producer, Devices: []snapshot.Device{{Meters: snapshot.Meters{Allocated: size}}}})
		}
		got := len(run.Snapshots)
		if part := beforeTheEnd(run); part != nil {
			got = len(part.Snapshots)
		}
		if got != c.want || len(run.Snapshots) != len(c.held) {
			t.Errorf("%s: %d snapshots; want %d", c.name, got, c.want)
		}
	}
}
