// Package jsoncut cuts JSON of any size into values without decoding them: of large
// files few values are looked at, and decoding each with encoding/json took thirty
// times as long.
package jsoncut

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

// span finds the end of a JSON value.
type span struct {
	depth         int
	text, escaped bool
}

// through returns how much of b belongs to the value, and whether it ends there.
func (s *span) through(b []byte) (n int, done bool) {
	for i, c := range b {
		if s.text {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				if s.text = false; s.depth == 0 {
					return i + 1, true
				}
			}
			continue
		}
		switch c {
		case '"':
			s.text = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 0 {
				return i + 1, true
			} else if s.depth < 0 { // the container of a number
				return i, true
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if s.depth == 0 {
				return i, true
			}
		}
	}
	return len(b), false
}

// begins reports whether a value may begin with c.
func begins(c byte) bool {
	return c >= '0' && c <= '9' || bytes.IndexByte([]byte(`{["-tfnNI`), c) >= 0 // Python writes NaN and Infinity too
}

// trim is b without the spaces that it begins with. bytes.TrimLeft would make a set of the
// characters each time.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// Scanner cuts what an input has ahead into values.
type Scanner struct {
	In   *bounded.Input
	Max  int    // bytes of a value that is kept
	What string // the file should be, for errors: "trace of torch.profiler"

	raw []byte
}

// Next is the first byte that is no space; it stays.
func (s *Scanner) Next() (byte, error) {
	b, err := s.ahead()
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// ahead is what lies ahead from the first byte on that is no space.
func (s *Scanner) ahead() ([]byte, error) {
	for {
		b, err := s.In.Ahead()
		if err != nil {
			return nil, s.end(err)
		}
		rest := trim(b)
		const perStep = 4 // spaces
		if err := s.In.Work((len(b) - len(rest)) / perStep); err != nil {
			return nil, err
		}
		if err := s.In.Skip(uint64(len(b) - len(rest))); err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			s.In.Mark()
			return rest, nil
		}
	}
}

// end makes the end of the file one of a value.
func (s *Scanner) end(err error) error {
	if errors.Is(err, io.EOF) {
		return s.In.Cut()
	}
	return err
}

// Take passes over the next byte, which must be the one wanted.
func (s *Scanner) Take(wanted byte) error {
	c, err := s.Next()
	if err != nil {
		return err
	}
	return s.take(c, wanted)
}

// take passes over c, which lies ahead.
func (s *Scanner) take(c, wanted byte) error {
	if c != wanted {
		return s.In.Fail("%q where %q should be: no %s", c, wanted, s.What)
	}
	return s.In.Skip(1)
}

// More passes over the comma before the next item, or the bracket after the
// last, and reports which it was.
func (s *Scanner) More(first bool, bracket byte) (bool, error) {
	c, err := s.Next()
	if err != nil {
		return false, err
	}
	if c == bracket {
		return false, s.In.Skip(1)
	}
	if !first {
		err = s.take(c, ',')
	}
	return err == nil, err
}

// Value returns the next value, valid until the next call; one that is not kept may lack
// its beginning.
func (s *Scanner) Value(keep bool) ([]byte, error) {
	b, err := s.ahead()
	if err != nil {
		return nil, err
	}
	if !begins(b[0]) {
		return nil, s.In.Fail("%q where a value should be", b[0])
	}
	s.raw = s.raw[:0]
	var v span
	for {
		n, done := v.through(b)
		const perStep = 4 // bytes
		if err := s.In.Work(n / perStep); err != nil {
			return nil, err
		}
		if keep && len(s.raw)+n > s.Max {
			return nil, s.In.Fail("a value of more than %s", snapshot.Bytes(s.Max))
		}
		if err := s.In.Skip(uint64(n)); err != nil {
			return nil, err
		}
		if done && len(s.raw) == 0 {
			return b[:n], nil
		}
		if keep {
			s.raw = append(s.raw, b[:n]...)
		}
		if done {
			return s.raw, nil
		}
		if b, err = s.In.Ahead(); err != nil {
			return nil, s.end(err)
		}
	}
}

// List calls each at the items of a list, which it must read.
func (s *Scanner) List(each func() error) error {
	if err := s.Take('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := s.More(first, ']'); err != nil || !more {
			return err
		}
		const steps = 3
		if err := s.In.Work(steps); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
}

// Object calls each at the values of an object, which it must read.
func (s *Scanner) Object(each func(key string) error) error {
	if err := s.Take('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := s.More(first, '}'); err != nil || !more {
			return err
		}
		const steps = 16
		if err := s.In.Work(steps); err != nil {
			return err
		}
		key, err := s.Text()
		if err != nil {
			return err
		}
		if err := s.Take(':'); err != nil {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
}

// Pass passes over the next value.
func (s *Scanner) Pass() error {
	_, err := s.Value(false)
	return err
}

// Text reads one; null is an empty one.
func (s *Scanner) Text() (string, error) {
	raw, err := s.Value(true)
	if err == nil {
		const steps = 4
		err = s.In.Work(steps * bytes.Count(raw, []byte(`\`)))
	}
	text := ""
	if err == nil && !ReadText(raw, &text) {
		err = s.In.Fail("%.40q where a text should be", raw)
	}
	return text, err
}

// Int reads a whole number; null is 0.
func (s *Scanner) Int() (int64, error) {
	raw, err := s.Value(true)
	var n int64
	if err == nil && !ReadInt(raw, &n, 64) {
		err = s.In.Fail("%.40q where a whole number should be", raw)
	}
	return n, err
}

// Members calls each for the members of an object, with values as they are
// written, until it returns false; it reports whether all went well.
func Members(object []byte, each func(key, value []byte) bool) bool {
	b := bytes.TrimSpace(object)
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	b = b[1:]
	for first := true; ; first = false {
		b = trim(b)
		if bytes.HasPrefix(b, []byte("}")) {
			return true
		}
		if !first {
			rest, ok := bytes.CutPrefix(b, []byte(","))
			if !ok {
				return false
			}
			b = trim(rest)
		}
		var key, value span
		n, ok := key.through(b)
		if !ok || b[0] != '"' {
			return false
		}
		name := b[1 : n-1]
		if b, ok = bytes.CutPrefix(trim(b[n:]), []byte(":")); !ok {
			return false
		}
		b = trim(b)
		if n, ok = value.through(b); !ok || n == 0 || !each(name, b[:n]) {
			return false
		}
		b = b[n:]
	}
}

// IsNull reports whether a value is null, which leaves the target unchanged, as in encoding/json.
func IsNull(v []byte) bool { return string(v) == "null" }

// ReadText reads a string; it returns false for any other value.
func ReadText(v []byte, into *string) bool {
	switch {
	case IsNull(v):
		return true
	case v[0] != '"':
		return false
	case bytes.IndexByte(v, '\\') < 0:
		*into = string(v[1 : len(v)-1])
		return true
	}
	return json.Unmarshal(v, into) == nil
}

// ReadFloat reads a finite number; it returns false for any other value.
func ReadFloat(v []byte, into *float64) bool {
	if IsNull(v) {
		return true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	*into = f
	return err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// short reads up to nine digits, which most numbers have; false for any other value.
func short(v []byte) (n int32, ok bool) {
	if len(v) == 0 || len(v) > 9 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int32(c-'0')
	}
	return n, true
}

// ReadInt reads an integer of the given bits; it returns false for any other value.
func ReadInt[T int32 | int64](v []byte, into *T, bits int) bool {
	if n, ok := short(v); ok {
		*into = T(n)
		return true
	}
	if IsNull(v) {
		return true
	}
	n, err := strconv.ParseInt(string(v), 10, bits)
	*into = T(n)
	return err == nil
}

// ReadUint reads a 64-bit unsigned integer; it returns false for any other value.
func ReadUint(v []byte, into *uint64) bool {
	if IsNull(v) {
		return true
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	*into = n
	return err == nil
}
