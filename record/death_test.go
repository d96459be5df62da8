package record

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestWhoKilledACommandIsSaid(t *testing.T) {
	most := &followed{TreeProcess: snapshot.TreeProcess{Role: "loader worker 3", Points: []snapshot.ProcessPoint{{Anonymous: 93 << 30}}}}
	before := kills{group: 1, machine: 5, limit: 400 << 30}
	none := kills{group: -1, machine: -1, limit: snapshot.Unknown}
	for _, c := range []struct {
		before, now kills
		code        int
		want        string
	}{
		{before, kills{2, 6, 400 << 30}, 137, "the kernel killed a process: the limit of 400 GiB of the control group was reached; loader worker 3 held most, 93.0 GiB"},
		{before, kills{2, 6, 400 << 30}, 1, "the kernel killed a process: the limit of 400 GiB of the control group was reached; loader worker 3 held most, 93.0 GiB"},
		{kills{1, 5, snapshot.Unknown}, kills{1, 6, snapshot.Unknown}, 137, "the kernel killed a process: the machine had no memory left; loader worker 3 held most, 93.0 GiB"},
		{before, kills{1, 6, 400 << 30}, 0, ""}, // of another command
		{before, before, 137, "a process sent the signal that killed it: the kernel killed nothing for want of memory"},
		{before, before, 143, ""},
		{none, none, 137, ""},
	} {
		if got, kernel := c.before.since(c.now, c.code, most); got != c.want || kernel != strings.HasPrefix(c.want, "the kernel") {
			t.Errorf("%+v to %+v, %d: %q; want %q", c.before, c.now, c.code, got, c.want)
		}
	}
}
