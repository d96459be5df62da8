package bounded

import (
	"bytes"
	"io"
)

// JSON is the text of the input for encoding/json, charged for what that makes of it while it is
// read, before any of it is made: the text, lists by their brackets, objects by their braces, and
// so many bytes for each comma, which parts the numbers and strings of a list. Each is charged
// with what growing lists leave behind.
func (in *Input) JSON(comma int) io.Reader { return &jsonText{in, comma} }

type jsonText struct {
	in    *Input
	comma int
}

// Read implements io.Reader.
func (t *jsonText) Read(p []byte) (int, error) {
	const bracket, brace = 70, 280
	n, err := t.in.Read(p)
	cost := n
	for b, each := range map[string]int{",": t.comma, "[": bracket, "{": brace} {
		cost += each * bytes.Count(p[:n], []byte(b))
	}
	t.in.Mark()
	if full := t.in.Charge(cost); full != nil {
		return 0, full
	}
	return n, err
}
