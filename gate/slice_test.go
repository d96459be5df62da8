package gate

import (
	"errors"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// JAX and torch.profiler name no device where nothing is live.
func TestARunThatEndsEmptyHasTheDevicesOfItsBeginning(t *testing.T) {
	cuda := []snapshot.Device{{Kind: snapshot.CUDA}}
	for _, c := range []struct {
		device      string
		first, last []snapshot.Device
		refused     string
	}{
		{"", nil, nil, ""},
		{"", cuda, nil, ""},
		{"cuda:0", cuda, nil, ""},
		{"cuda:1", cuda, cuda, "there are cuda:0"},
		{"cuda:1", nil, nil, "there are none"},
	} {
		r := &diff.Result{First: &snapshot.Snapshot{Devices: c.first}, Last: &snapshot.Snapshot{Devices: c.last}}
		err := Slice{Device: c.device}.keepDevice(r)
		var hint interface{ Hint() string }
		if (err == nil) != (c.refused == "") || err != nil && (!errors.As(err, &hint) || hint.Hint() != c.refused) {
			t.Errorf("--device %q of %v and %v: %v", c.device, c.first, c.last, err)
		}
	}
}
