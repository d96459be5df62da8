package memtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/memtest"
)

// console is a test that prints what was said of it, but for the stacks.
type console struct{ testing.TB }

func (console) Helper() {}

func (console) Errorf(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		if at := strings.Index(line, ", allocated at "); at >= 0 {
			line = line[:at] + ", allocated at …\n"
		}
		if !strings.HasPrefix(line, "\t") {
			fmt.Print(line)
		}
	}
}

func ExampleNoLeak() {
	t := console{} // in a test, its *testing.T

	seen := make([]*[4]int, 0, 1000)
	memtest.NoLeak(t, 3, 10, func() {
		row := new([4]int)
		seen = append(seen, row) // this should not outlive the call
	})
	// Output:
	// memtest: the Go heap holds more after each run
	// +32 B a run, blocks +1, allocated at …
}
