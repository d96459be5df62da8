// Package peaks reads the peaks that a run's steps reached, peaks.csv.
package peaks

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

const (
	// maxPeaks is generous: a line is written only if the highest peak so far rises.
	maxPeaks = 10_000
	// maxBytes is more than any device has.
	maxBytes = 1 << 50
)

// Header begins the file.
const Header = "step,phase,device,batch,length,peak\n"

// Detect reports whether a file begins like one of these.
func Detect(head []byte) bool { return bounded.Begins(head, Header) }

// Read reads the file, up to a line that is broken; the error names it. A last line without its end is left out.
func Read(r io.Reader) (out []snapshot.Peak, err error) {
	err = bounded.Rows(r, Header, func(line string) error {
		if len(out) == maxPeaks {
			return fmt.Errorf("more than %d peaks", maxPeaks)
		}
		peak, err := parse(line)
		if err == nil {
			out = append(out, peak)
		}
		return err
	})
	return out, err
}

func parse(line string) (p snapshot.Peak, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != strings.Count(Header, ",")+1 {
		return p, errors.New("want six fields")
	}
	kind, index, _ := strings.Cut(fields[2], ":")
	number := func(text, name string) (n int64) {
		if err != nil {
			return 0
		}
		if n, err = strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
			n, err = 0, fmt.Errorf("%q is no %s", text, name)
		}
		return n
	}
	p = snapshot.Peak{
		Step: number(fields[0], "step"), Phase: fields[1],
		Kind: snapshot.DeviceKind(kind), Index: int(number(index, "device")),
		Batch: part(number(fields[3], "batch")), Length: part(number(fields[4], "length")), Bytes: snapshot.Bytes(number(fields[5], "size")),
	}
	if p.Bytes > maxBytes {
		return p, fmt.Errorf("a peak of %s bytes", fields[5])
	}
	return p, err
}

// part is a part of an input's size; 0, unknown, for one so large that products of two would overflow.
func part(n int64) int64 {
	if n > math.MaxInt32 {
		return 0
	}
	return n
}
