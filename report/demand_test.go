package report

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestABatchIsNotSaidToFit(t *testing.T) {
	d := diff.Demand{
		Device: snapshot.Device{Kind: snapshot.CUDA, Limit: 80 * snapshot.GiB}, Sizes: 5, Smallest: diff.Input{Batch: 8}, Largest: diff.Input{Batch: 32},
		Fixed: 2 << 30, Sample: 3 << 29, Next: diff.Input{Batch: 64}, Need: 98 * snapshot.GiB, NeedOff: 307 * snapshot.MiB, Fits: 52,
	}
	text := strings.ReplaceAll(demandText(&d), glue(" "), " ")
	if want := "; batch 64 would need 98.0 GiB ± 307 MiB, and anything above batch 52 does not fit in 80.0 GiB"; !strings.HasSuffix(text, want) {
		t.Errorf("%q, want at its end %q", text, want)
	}
}
