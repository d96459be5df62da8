package files

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// mprofBytes is how much of a file of mprof's is read: a line each 0.1 s, for more than a month.
const mprofBytes = 1 << 30

// mprofSizes describes the sizes in a file of mprof, ": from 21.3 MiB to 25.8 MiB in 12.0 s, at most 30.1 MiB"; "" if it has none.
func mprofSizes(r io.Reader) string {
	lines := bufio.NewScanner(io.LimitReader(r, mprofBytes))
	var first, last, most, begin, end float64
	n := 0
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[0] != "MEM" {
			continue
		}
		size, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(size >= 0 && size < 1<<30) { // MiB; more than any machine has, or not a number
			continue
		}
		at, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			continue
		}
		if n == 0 {
			first, begin = size, at
		}
		last, end, most = size, at, max(most, size)
		n++
	}
	if n == 0 {
		return ""
	}
	mebibytes := func(v float64) string { return snapshot.Bytes(v * float64(snapshot.MiB)).String() }
	return fmt.Sprintf(": from %s to %s in %.1f s, at most %s", mebibytes(first), mebibytes(last), end-begin, mebibytes(most))
}
