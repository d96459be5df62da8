// Package losses reads the losses of a run, losses.csv.
package losses

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
const Header = "step,source,loss\n"

// Detect reports whether a file begins like one of these.
func Detect(head []byte) bool { return bounded.Begins(head, Header) }

// Read reads the file. What follows a line that is broken is not read; the error names the line. A last line
// without its end is left out: the process was stopped as it wrote it.
func Read(r io.Reader) (*snapshot.Losses, error) {
	out := &snapshot.Losses{}
	return out, bounded.Rows(r, Header, func(line string) error { return add(out, line) })
}

func add(out *snapshot.Losses, line string) error {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return errors.New("want three fields")
	}
	step, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no step", fields[0])
	}
	value, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return fmt.Errorf("%q is no loss", fields[2])
	}
	loss := snapshot.Loss{Step: step, Value: value}
	switch fields[1] {
	case "backward":
		out.Backward = append(out.Backward, loss)
	case "mark":
		out.Marked = append(out.Marked, loss)
	default:
		return fmt.Errorf("%q is no source of losses", fields[1])
	}
	return nil
}
