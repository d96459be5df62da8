package bounded

import (
	"bytes"
	"io"
)

// JSON is the text of the input for encoding/json. Memory that encoding/json will need is charged while the text is read, before it is
// allocated: for the text, for lists by their brackets, for objects by their braces, and comma bytes for each comma, which separates
// the items of a list. The charges include what growing lists leave as garbage.
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
