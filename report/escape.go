package report

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable replaces what a terminal would obey or hide (control characters, escape sequences, bidirectional overrides, invalid UTF-8)
// by Go escapes such as \x1b and \u202e. Everything else stays, also quotes and backslashes.
func Printable(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if r, size, ok := nextRune(s); ok && !unprintable(r) {
			b.WriteRune(r)
			s = s[size:]
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
			s = s[size:]
		}
	}
	return b.String()
}

// maxName is how many characters of a name are shown to people. Names of C++ templates have hundreds; a longer name is an attack or a
// mistake.
const maxName = 400

// brief is Printable for a person: the middle of a name longer than maxName is left out, and of a path through many
// nested containers.
func brief(s string) string { return shortened(flattened(Printable(s))) }

// flattened names the first and the last of four or more containers that are nested one in the other, as in a chain
// of tuples.
func flattened(s string) string {
	const item = "[…]"
	at := strings.Index(s, strings.Repeat(item, 4))
	if at < 0 {
		return s
	}
	end := at
	for strings.HasPrefix(s[end:], item) {
		end += len(item)
	}
	return s[:at] + item + "…" + item + s[end:]
}

func shortened(s string) string {
	if len(s) <= maxName || utf8.RuneCountInString(s) <= maxName {
		return s
	}
	const half = (maxName - 1) / 2
	head, tail := 0, len(s)
	for range half {
		_, size := utf8.DecodeRuneInString(s[head:])
		head += size
		_, size = utf8.DecodeLastRuneInString(s[:tail])
		tail -= size
	}
	return s[:head] + "…" + s[tail:]
}

// unprintable is also true for utf8.RuneError, which marks invalid bytes.
func unprintable(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }

// nextRune decodes the first character. ok is false if the first byte begins none.
func nextRune(s string) (r rune, size int, ok bool) {
	r, size = utf8.DecodeRuneInString(s)
	return r, size, r != utf8.RuneError || size > 1
}
