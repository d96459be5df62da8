package report

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestWhatADriverHasBesideTheAllocatorIsNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		d    snapshot.Device
		want []part
	}{
		{"nothing is known of it", snapshot.Device{}, []part{{"other: libraries, context", "other_bytes", 700}}},
		{"one communicator", snapshot.Device{Communicators: 1}, []part{{"other: libraries, context, 1 communicator", "other_bytes", 700}}},
		{"NCCL logs its buffers", snapshot.Device{Communicators: 3, NCCL: 500}, []part{{"buffers of NCCL, by its log", "nccl_bytes", 500}, {"other: libraries, context, 3 communicators", "other_bytes", 200}}},
		{"it logs more than there is, since it logs no frees", snapshot.Device{NCCL: 900}, []part{{"buffers of NCCL, by its log", "nccl_bytes", 700}, {"other: libraries, context", "other_bytes", 0}}},
	} {
		c.d.Kind, c.d.Meters = snapshot.CUDA, snapshot.Meters{Requested: 100, Allocated: 200, Active: 200, Reserved: 300, Driver: 1000}
		parts := waterfall(c.d, 0, fragments{}, false)
		sum := snapshot.Bytes(0)
		for _, p := range parts {
			sum += p.bytes
		}
		if got := parts[len(parts)-len(c.want):]; !slices.Equal(got, c.want) || sum != c.d.Meters.Driver {
			t.Errorf("%s: %+v, in all %d", c.name, got, sum)
		}
	}
}
