package pagetest

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

// testFleet looks at the page of a fleet with a run of 40 ranks, of which four leak, and one of a workload, whose folder has a name
// that is to stay a name.
func testFleet(t *testing.T, ctx context.Context, dir string, run func(...string)) {
	ranks := exec.CommandContext(t.Context(), "go", "run", "./bench/ranks", filepath.Join(dir, "ranks"), "40")
	ranks.Dir = "../.."
	if out, err := ranks.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const hostile = "<script>alert(1)</script>"
	run("record", "--workload", "L30", "--steps", "40", "--every", "10", "--out", hostile[:8]+"1", "-q")
	run("report", hostile[:8]+"1", "-o", filepath.Join(hostile[:8]+"1", "report.html"))
	run("fleet", "add", "ranks", hostile[:8]+"1", "--commit", "4f2a91c", "-q")
	run("fleet", "report", "-q")
	file := filepath.Join(dir, "fleet.html")
	for _, width := range []int64{1200, 400} {
		for _, dark := range []bool{false, true} {
			b := open(t, ctx, file, width, dark)
			b.holds("document.querySelector('.lead').textContent", "2 leaks in 2 of 2 runs")
			b.want("document.querySelectorAll('#leaks tr').length", "3")
			b.holds("document.querySelector('.run p').textContent", "40 ranks; ranks 0, 10, 20, 30, which share no group, grow by 64.0 KiB/step")
			b.want("document.querySelectorAll('.heat').length", "2")
			b.want("document.querySelectorAll('.run')[0].querySelectorAll('.heat rect.h7').length", "4")
			b.want("document.querySelectorAll('.run')[0].querySelectorAll('figure').length", "24")
			b.holds("[...document.querySelectorAll('#runs a')].map(a => a.getAttribute('href')).join()", "/report.html")
			b.want("getComputedStyle(document.querySelector('.heat rect.h7')).fill != getComputedStyle(document.querySelector('.heat rect.h0')).fill", "true")
			b.want("document.documentElement.scrollWidth <= innerWidth", "true")
		}
	}
}
