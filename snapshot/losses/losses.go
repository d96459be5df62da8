// Package losses reads the losses of a run, losses.csv.
package losses

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Header begins the file.
const Header = "step,source,loss\n"

// Bounds: the agent keeps 50,000 losses of a source, then each second one, and so on. A number takes 25 bytes at most.
const (
	maxRows = 1 << 20
	maxLine = 256
)

// Detect reports whether a file begins like one of these.
func Detect(head []byte) bool {
	text := string(head)
	return strings.HasPrefix(text, Header) || strings.HasPrefix(Header, text)
}

// Read reads the file. What follows a line that is broken is not read; the error names the line. A last line
// without its end is left out: the process was stopped as it wrote it.
func Read(r io.Reader) (*snapshot.Losses, error) {
	in := bufio.NewReaderSize(r, maxLine)
	out := &snapshot.Losses{}
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return out, nil
		case errors.Is(err, bufio.ErrBufferFull):
			err = fmt.Errorf("a line of more than %d bytes", maxLine)
		case err != nil && !errors.Is(err, io.EOF):
		case n == 1 && string(line) != Header:
			err = errors.New("the columns are others than memdiag writes")
		case n > maxRows:
			err = fmt.Errorf("more than %d lines", maxRows)
		case n > 1:
			err = add(out, strings.TrimSuffix(string(line), "\n"))
		}
		if err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
	}
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
