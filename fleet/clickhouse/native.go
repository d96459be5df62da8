package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// A block of the format Native begins with the numbers of columns and rows. Each column follows with its name, its type and its values.
// Numbers of things and lengths of texts are variable-length integers.

// Limits of a server's answer.
const (
	maxRows    = 1 << 20 // of a block
	maxColumns = 64
	maxName    = 1 << 10
	maxText    = 1 << 20
)

// answerError is an answer that is no such block, or is of another shape.
type answerError struct{ reason string }

func (e *answerError) Error() string { return e.reason }

// typeOf is how a kind of column is stored. Times are microseconds since 1970: servers before 20.1 have no type for them.
func typeOf(k parquet.Kind) string {
	switch k {
	case parquet.Text:
		return "String"
	case parquet.Float:
		return "Float64"
	}
	return "Int64"
}

// appendBlock appends columns of equal length.
func appendBlock(out []byte, columns []parquet.Column) []byte {
	out = binary.AppendUvarint(out, uint64(len(columns)))
	out = binary.AppendUvarint(out, uint64(columns[0].Len()))
	for i := range columns {
		c := &columns[i]
		out = appendText(appendText(out, c.Name), typeOf(c.Kind))
		switch c.Kind {
		case parquet.Text:
			for _, t := range c.Texts {
				out = appendText(out, t)
			}
		case parquet.Float:
			for _, v := range c.Floats {
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
			}
		default:
			for _, v := range c.Ints {
				out = binary.LittleEndian.AppendUint64(out, uint64(v))
			}
		}
	}
	return out
}

func appendText(out []byte, t string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(t))), t...)
}

// readBlocks reads blocks of columns of these kinds, and calls see with each that has rows.
func readBlocks(in *bufio.Reader, kinds []parquet.Kind, see func(columns []*parquet.Values, rows int) error) error {
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		columns, rows, err := readBlock(in, kinds)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if rows == 0 {
			continue
		}
		if err := see(columns, rows); err != nil {
			return err
		}
	}
}

func readBlock(in *bufio.Reader, kinds []parquet.Kind) (columns []*parquet.Values, rows int, err error) {
	n, err := readLength(in, maxColumns, "columns")
	if err != nil {
		return nil, 0, err
	}
	if rows, err = readLength(in, maxRows, "rows"); err != nil {
		return nil, 0, err
	}
	if n != len(kinds) && !(n == 0 && rows == 0) {
		return nil, 0, &answerError{fmt.Sprintf("a block of %d columns, not %d", n, len(kinds))}
	}
	for i := range n {
		name, err := readText(in, maxName)
		if err != nil {
			return nil, 0, err
		}
		kind, err := readText(in, maxName)
		if err != nil {
			return nil, 0, err
		}
		if kind != typeOf(kinds[i]) {
			return nil, 0, &answerError{fmt.Sprintf("column %q is of type %q, not %s", name, kind, typeOf(kinds[i]))}
		}
		v, err := readValues(in, kinds[i], rows)
		if err != nil {
			return nil, 0, err
		}
		columns = append(columns, v)
	}
	return columns, rows, nil
}

// readValues reads a column's values. Memory grows with the bytes that have arrived, whatever number of rows the block claims.
func readValues(in *bufio.Reader, kind parquet.Kind, rows int) (*parquet.Values, error) {
	v := &parquet.Values{}
	var word [8]byte
	for range rows {
		if kind == parquet.Text {
			t, err := readText(in, maxText)
			if err != nil {
				return nil, err
			}
			v.Texts = append(v.Texts, t)
			continue
		}
		if _, err := io.ReadFull(in, word[:]); err != nil {
			return nil, err
		}
		if bits := binary.LittleEndian.Uint64(word[:]); kind == parquet.Float {
			v.Floats = append(v.Floats, math.Float64frombits(bits))
		} else {
			v.Ints = append(v.Ints, int64(bits))
		}
	}
	return v, nil
}

func readLength(in *bufio.Reader, most int, of string) (int, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return 0, err
	}
	if n > uint64(most) {
		return 0, &answerError{fmt.Sprintf("a block of %d %s; %d is the most", n, of, most)}
	}
	return int(n), nil
}

func readText(in *bufio.Reader, most int) (string, error) {
	n, err := readLength(in, most, "bytes in a text")
	if err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(in, text)
	return string(text), err
}
