package bounded

import (
	"bytes"
	"errors"
	"io"

	"github.com/memdiag/memdiag/snapshot"
)

// MaxLine is the length in bytes at which a line is no line any more: C++ names
// reach tens of thousands of bytes.
const MaxLine = 1 << 20

// Line returns the next line without its end, valid until the next call; io.EOF
// after the last. A last line without a line feed is an error, for half a name or a number
// reads as well as a whole one.
func (in *Input) Line() ([]byte, error) {
	in.start = in.offset()
	line, err := in.rawLine()
	if err != nil {
		return nil, err
	}
	const steps = 2
	if err := in.Work(steps); err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r"), nil // two if Windows converted a text that had one already
}

// Torn holds after Line found the file to end in the middle of a line.
func (in *Input) Torn() bool { return in.torn }

// Lines calls each for every line that is left, up to its first error.
func (in *Input) Lines(each func(line []byte) error) error {
	for {
		line, err := in.Line()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

func (in *Input) rawLine() ([]byte, error) {
	searched := 0
	in.long = in.long[:0]
	for {
		ahead := in.ahead()
		end := bytes.IndexByte(ahead[searched:], '\n')
		if end >= 0 {
			line := ahead[:searched+end]
			in.pos += len(line) + 1
			if len(in.long) > 0 {
				return in.lengthen(line)
			}
			return line, nil
		}
		searched = len(ahead)
		if in.isFull() {
			if _, err := in.lengthen(ahead); err != nil {
				return nil, err
			}
			in.pos, searched = len(in.buf), 0
		}
		if in.more() {
			continue
		}
		rest := in.ahead()
		in.pos = len(in.buf)
		if !errors.Is(in.err, io.EOF) {
			return nil, in.wrap(in.err)
		}
		line, err := in.lengthen(rest)
		switch {
		case err != nil:
			return nil, err
		case len(line) == 0:
			return nil, io.EOF
		}
		in.torn = true
		cut := in.Cut()
		cut.Reason = "the file ends in the middle of a line"
		cut.Hint += "; where nothing is missing, a line feed at its end says so"
		return nil, cut
	}
}

// lengthen adds to a line that the buffer does not hold.
func (in *Input) lengthen(by []byte) ([]byte, error) {
	if in.long = append(in.long, by...); len(in.long) > MaxLine {
		return nil, in.Fail("a line of more than %s", snapshot.Bytes(MaxLine))
	}
	return in.long, nil
}

// Finish reads a compressed file to its end, where its checksum is; a reader may have stopped before.
func (in *Input) Finish() error {
	if _, compressed := in.r.(*capped); !compressed {
		return nil
	}
	for in.more() {
		in.pos = len(in.buf)
	}
	if errors.Is(in.err, io.EOF) {
		return nil
	}
	return in.wrap(in.err)
}
