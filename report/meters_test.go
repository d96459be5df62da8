package report

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAMallocWithoutFiguresHasNoMeter: a process on musl had allocated "0 B".
func TestAMallocWithoutFiguresHasNoMeter(t *testing.T) {
	for _, c := range []struct {
		name   string
		meters snapshot.Meters
		want   string
	}{
		{"glibc's", snapshot.Meters{Requested: 3, Allocated: 3, Active: 3, Reserved: 4, Driver: 9}, "allocated heap RSS "},
		{"musl's", snapshot.Meters{Driver: 9}, "RSS "},
	} {
		d, names := snapshot.Device{Kind: snapshot.Process, Meters: c.meters}, ""
		for _, m := range meterList(d, &c.meters) {
			names += m.name + " "
		}
		if names != c.want {
			t.Errorf("%s: %q, want %q", c.name, names, c.want)
		}
	}
}
