package torch

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON; real snapshots nest seven deep.
const maxDepth = 1000

// decodeJSON drives the machine with a snapshot as json.dump writes it: the
// pickle's dicts and lists, tuples as lists.
func decodeJSON(m *machine) error {
	j := jsonReader{m: m, in: m.in}
	if err := j.value(0); err != nil {
		return err
	}
	if c := j.next(); c != 0 {
		return j.unexpected(c, "after the end of the snapshot")
	}
	return m.root()
}

// Steps of a value or text, and what a list or dict takes more.
const (
	usualSteps     = 2
	containerSteps = 6
)

type jsonReader struct {
	m       *machine
	in      *input
	scratch []byte // a string without its escapes
	inside  bool   // of a list of frames
}

// next is the first byte that is not white space, or 0 at the end; it stays.
func (j *jsonReader) next() byte {
	in := j.in
	for in.have(1) {
		at := in.pos
		for at < len(in.buf) && isSpace(in.buf[at]) {
			at++
		}
		const perStep = 4
		in.steps += int64(at-in.pos) / perStep
		if in.pos = at; at < len(in.buf) {
			j.m.at = in.offset()
			return in.buf[at]
		}
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (j *jsonReader) unexpected(c byte, where string) error {
	if c == 0 && j.in.err != nil && !j.in.have(1) {
		return j.in.cut()
	}
	return j.m.fail("%q %s", c, where)
}

// value pushes the next value.
func (j *jsonReader) value(depth int) error {
	if depth > maxDepth {
		return j.m.fail("JSON nests deeper than %d", maxDepth)
	}
	if err := j.m.bounded(); err != nil {
		return err
	}
	j.in.steps += usualSteps
	switch c := j.next(); c {
	case '{':
		j.in.pos++
		j.in.steps += containerSteps
		if err := j.m.openContainer(false); err != nil {
			return err
		}
		return j.items('}', depth)
	case '[':
		if n := len(j.m.stack); n > 0 && j.m.stack[n-1] == (value{vString, uint64(kwFrames)}) {
			return j.frames(depth)
		}
		return j.list(depth)
	case '"':
		return j.text()
	case 0:
		return j.unexpected(0, "where a value should be")
	default:
		return j.scalar(c)
	}
}

// frames pushes the list of frames at the next byte. Most are written again and again, all of
// them out: such a text is known by its bytes.
func (j *jsonReader) frames(depth int) error {
	const ahead = window / 4 // of a list that is compared
	in, m := j.in, j.m
	in.ready(ahead)
	start, base := in.pos, in.base
	if start+reach > len(in.buf) || j.inside {
		return j.list(depth)
	}
	t := m.spans()
	at := t.places((*[reach]byte)(in.buf[start:]))
	if id := t.guess(in.buf[start:], at); id != 0 {
		t.met(at, id)
		s := &t.spans[id]
		in.pos += int(s.textEnd - s.text)
		return m.push(value{vStack, uint64(s.stack & maxPayload)})
	}
	j.inside = true
	err := j.list(depth)
	j.inside = false
	if err != nil {
		return err
	}
	top := &m.stack[len(m.stack)-1]
	*top = m.finish(*top)
	if in.base == base && top.k == vStack {
		t.read(in.buf[start:in.pos], at, slotOf(*top), nil, false)
	}
	return nil
}

func (j *jsonReader) list(depth int) error {
	j.in.pos++
	j.in.steps += containerSteps
	if err := j.m.openContainer(true); err != nil {
		return err
	}
	return j.items(']', depth)
}

// items reads the inside of the container on top of the stack.
func (j *jsonReader) items(end byte, depth int) error {
	if j.next() == end {
		j.in.pos++
		return nil
	}
	for {
		op := opAppend
		if end == '}' {
			op = opSetItem
			if c := j.next(); c != '"' {
				return j.unexpected(c, "where a key should be")
			}
			if err := j.text(); err != nil {
				return err
			}
			if c := j.next(); c != ':' {
				return j.unexpected(c, "where a colon should be")
			}
			j.in.pos++
		}
		if err := j.value(depth + 1); err != nil {
			return err
		}
		if err := j.m.fill(op); err != nil {
			return err
		}
		c := j.next()
		if c != ',' && c != end {
			return j.unexpected(c, "where a comma should be")
		}
		j.in.pos++
		if c == end {
			return nil
		}
	}
}

// text pushes the string that begins at the next byte.
func (j *jsonReader) text() error {
	j.in.pos++
	j.in.steps += usualSteps
	rest := j.in.buf[j.in.pos:]
	if n := bytes.IndexByte(rest, '"'); n >= 0 && n <= longest && bytes.IndexByte(rest[:n], '\\') < 0 {
		j.in.pos += n + 1
		return j.m.pushText(rest[:n])
	}
	return j.escaped()
}

// escaped reads a string that holds escapes, is long, or crosses the window.
func (j *jsonReader) escaped() error {
	in, out := j.in, j.scratch[:0]
	for in.have(1) {
		rest := in.buf[in.pos:]
		n := 0
		for n < len(rest) && rest[n] != '"' && rest[n] != '\\' {
			n++
		}
		const perStep = 8
		in.steps += int64(n/perStep) + 1
		out = append(out, rest[:n]...)
		in.pos += n
		if n < len(rest) {
			in.pos++
			if rest[n] == '"' {
				j.scratch = out
				return j.m.pushText(out)
			}
			var err error
			if out, err = j.escape(out); err != nil {
				return err
			}
		}
		if len(out) > longest {
			out = out[:longest+1] // too long to keep, whatever follows
		}
	}
	return in.cut()
}

func (j *jsonReader) escape(out []byte) ([]byte, error) {
	b, err := j.in.take(1)
	if err != nil {
		return nil, err
	}
	switch c := b[0]; c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		j.in.steps++
	default:
		return nil, j.m.fail("%q is not an escape", c)
	}
	r, err := j.hex()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) && j.in.have(6) && j.in.buf[j.in.pos] == '\\' && j.in.buf[j.in.pos+1] == 'u' {
		j.in.pos += 2
		low, err := j.hex()
		if err != nil {
			return nil, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), nil
		}
		return utf8.AppendRune(utf8.AppendRune(out, utf8.RuneError), low), nil
	}
	return utf8.AppendRune(out, r), nil
}

func (j *jsonReader) hex() (rune, error) {
	b, err := j.in.take(4)
	if err != nil {
		return 0, err
	}
	r, ok := hexadecimal(b)
	if !ok {
		return 0, j.m.fail("%q are not hexadecimal digits", b)
	}
	return r, nil
}

// hexadecimal is the character of four digits, or of eight.
func hexadecimal(b []byte) (r rune, ok bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// scalar pushes a number or a literal; Python writes NaN and Infinity too.
func (j *jsonReader) scalar(c byte) error {
	if v, n := digits(j.in.buf[j.in.pos:]); n > 0 {
		j.in.pos += n
		return j.m.push(value{vInt, v})
	}
	const longestNumber = 1 << 10
	j.in.ready(longestNumber)
	word := j.in.buf[j.in.pos:min(j.in.pos+longestNumber, len(j.in.buf))]
	n := 0
	for n < len(word) && isWord(word[n]) {
		n++
	}
	word = word[:n]
	j.in.pos += n
	const perStep = 4
	j.in.steps += usualSteps + int64(n/perStep)
	switch string(word) {
	case "null":
		return j.m.push(value{k: vNone})
	case "true":
		return j.m.push(value{vBool, 1})
	case "false":
		return j.m.push(value{vBool, 0})
	case "NaN", "Infinity", "-Infinity":
		return j.m.push(value{k: vOpaque})
	}
	if v, ok := parseInt(word); ok {
		return j.m.push(v)
	}
	if len(word) > 1 && (c == '-' || c >= '0' && c <= '9') && bytes.ContainsAny(word, ".eE") {
		return j.m.push(value{k: vOpaque})
	}
	if j.in.pos == len(j.in.buf) && n < longestNumber {
		return j.in.cut()
	}
	return j.unexpected(c, "where a value should be")
}

// digits reads an int of no more than 18 digits and nothing else; n is 0 for all other words.
func digits(b []byte) (v uint64, n int) {
	const most = 18 // which is less than 2^63
	for n < min(len(b), most) && b[n]-'0' < 10 {
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	if n == len(b) || isWord(b[n]) {
		return 0, 0
	}
	return v, n
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '+' || c == '.'
}
