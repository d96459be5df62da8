package bounded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a table that the agent writes.
const (
	MaxRows = 1 << 20
	MaxRow  = 256 // bytes
)

// Rows calls row for each line of a table that begins with the line header. What follows a line that is broken is not read; the error
// names the line. A last line without its end is left out: the process was stopped as it wrote it.
func Rows(r io.Reader, header string, row func(string) error) error {
	in := bufio.NewReaderSize(r, MaxRow)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			err = fmt.Errorf("a line of more than %d bytes", MaxRow)
		case err != nil && !errors.Is(err, io.EOF):
		case n == 1 && string(line) != header:
			err = errors.New("the columns are not those that memdiag writes")
		case n > MaxRows:
			err = fmt.Errorf("more than %d lines", MaxRows)
		case n > 1:
			err = row(strings.TrimSuffix(string(line), "\n"))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// Begins reports whether a file that begins with head may have this header.
func Begins(head []byte, header string) bool {
	text := string(head)
	return strings.HasPrefix(text, header) || strings.HasPrefix(header, text)
}
