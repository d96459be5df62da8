package pprofio

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

// What /debug/pprof/heap?seconds=30 gives is the difference of two profiles, and was shown as live memory.
func TestADifferenceOfGosIsNoLiveMemory(t *testing.T) {
	p, err := profile.ParseData(totalstest.Profile(t, "go_30.pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	p.DurationNanos = (30 * time.Second).Nanoseconds()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(b.Bytes()); err == nil || !strings.Contains(err.Error(), "the growth within 30s of a Go program's heap") {
		t.Errorf("%v", err)
	}
}
