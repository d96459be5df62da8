// Package peaks reads the peaks that a run's steps reached, peaks.csv.
package peaks

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

// Header begins the file.
const Header = "step,phase,device,batch,length,peak\n"

// Detect reports whether a file begins like one of these.
func Detect(head []byte) bool { return bounded.Begins(head, Header) }

// Read reads the file, up to a line that is broken; the error names it. A last line without its end is left out.
func Read(r io.Reader) (out []snapshot.Peak, err error) {
	err = bounded.Rows(r, Header, func(line string) error {
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
		Device: snapshot.Device{Kind: snapshot.DeviceKind(kind), Index: int(number(index, "device"))},
		Batch:  number(fields[3], "batch"), Length: number(fields[4], "length"), Bytes: snapshot.Bytes(number(fields[5], "size")),
	}
	return p, err
}
