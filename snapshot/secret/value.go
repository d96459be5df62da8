package secret

import (
	"regexp"
	"strings"
)

// given matches a name with the separator before its value. For a flag that may be a space, for a name in quotes a comma.
var given = regexp.MustCompile(`([\pL_][\pL\d_.\-]*)(\\?["']?[\])}]?\s{0,4}(?:={1,3}>?|:=?)\s{0,4}|\\?["']\s{0,4},\s{0,4}|\s+)`)

var (
	quoted = regexp.MustCompile(`^(?:[bBuUfFrR]{0,2}|\$)(\\?["'])`)
	// colon is of a header, or of YAML: the value may be several words.
	colon = regexp.MustCompile(`:\s+$`)
	// next is another name after a comma: in lists such as a=1,token=x,b=2.
	next = regexp.MustCompile(`^\s*["']?[\pL_][\pL\d_.\-]*["']?\s*[=:]|^\s|^$`)
	// call is one in code that passes no text: token = tokenizer.next().
	call = regexp.MustCompile(`^[\pL_][\pL\d_.]*\([\pL\d_.,= ]*\)$`)
	// dashedValue is a value after --password: not a flag of one letter, nor one with two dashes.
	dashedValue = regexp.MustCompile(`^-[^-].`)
	// dashedToken is after --token no flag with a name or a short number: -lr, -j16.
	dashedToken = regexp.MustCompile(`^-[^-=][^=]{4,}$`)
)

// takes reports whether a word that begins with a dash is a value, and not the next flag.
func (c class) takes(word string) bool {
	return c == strong && dashedValue.MatchString(word) || (c == weak || c == keyOf) && dashedToken.MatchString(word) && digits.MatchString(word)
}

// classOfFlag says what a flag means of the word after it.
func classOfFlag(name string) class {
	c := classOf(name, false)
	if c > random && isSwitch(name) {
		return random
	}
	return c
}

// assignments masks the values of names: --token=x, --token x, TOKEN=x, "token": "x".
func assignments(text string) string {
	var b strings.Builder
	for from := 0; ; {
		at := given.FindStringSubmatchIndex(text[from:])
		if at == nil {
			b.WriteString(text[from:])
			return b.String()
		}
		begin, name, between := from+at[2], text[from+at[2]:from+at[3]], text[from+at[4]:from+at[5]]
		value := from + at[1]
		b.WriteString(text[from:value])
		from = value
		dashed := begin > 0 && text[begin-1] == '-' && (begin == 1 || strings.ContainsRune("- \t\n\"'=", rune(text[begin-2])))
		query := begin > 0 && strings.IndexByte("?&", text[begin-1]) >= 0
		if dashed {
			name = "-" + name
		}
		c := classOf(name, query)
		spaced, listed := strings.TrimSpace(between) == "", strings.Contains(between, ",")
		switch {
		case spaced && !dashed, listed && !quoted.MatchString(text[value:]), listed && !dashed && !argument.MatchString(text[max(0, begin-8):begin]):
			continue
		case spaced || listed && dashed:
			c = classOfFlag(name)
		}
		if c == open {
			continue
		}
		opening, inner := valueAt(text, value, query, c == strong && colon.MatchString(between))
		switch {
		case !c.hides(inner), (spaced || listed) && strings.HasPrefix(inner, "-") && !c.takes(inner):
			continue
		case c < strong && strings.HasSuffix(between, " ") && strings.Contains(between, "=") && call.MatchString(inner):
			continue
		}
		b.WriteString(opening + Mask)
		from = value + len(opening) + len(inner)
	}
}

// argument is the text before the first argument of a call.
var argument = regexp.MustCompile(`\(\s{0,4}\\?["']$`)

// valueAt is the value that begins at a place of a text, and the quote before it. A value of
// several parts, as "a"'b' and a$(b c) of a shell, has no quote before it.
func valueAt(text string, at int, query, words bool) (opening, inner string) {
	stops := " \t\r\n;&|<>"
	switch {
	case words:
		stops = "\r\n;"
	case query:
		stops = " \t\r\n&#;<>"
	}
	before, text := text[:at], text[at:]
	// What is open before the value ends it: an unclosed quote or bracket.
	ends := func(c byte) bool {
		if i := strings.IndexByte(")]}", c); i >= 0 {
			return strings.Count(before, "([{"[i:i+1]) > strings.Count(before, string(c))
		}
		return strings.IndexByte("\"'`", c) >= 0 && strings.Count(before, string(c))%2 == 1
	}
	stopped := func(i int) bool {
		return i >= len(text) || strings.IndexByte(stops, text[i]) >= 0 || ends(text[i]) ||
			text[i] == ',' && next.MatchString(text[i+1:min(len(text), i+100)]) || strings.HasPrefix(text[i:], `\"`)
	}
	i, closed := 0, true
	if m := quoted.FindStringSubmatch(text); m != nil {
		i = closing(text, len(m[0]), m[1])
		if i < 0 {
			return m[0], text[len(m[0]):]
		}
		if stopped(i) {
			return m[0], text[len(m[0]) : i-len(m[1])]
		}
	}
	for i < len(text) {
		end := i + 1
		switch c := text[i]; {
		case c == '\\':
			end = i + 2
		case stopped(i):
			return "", text[:i]
		case strings.IndexByte("\"'`", c) >= 0:
			end = closing(text, i+1, text[i:i+1])
		case strings.IndexByte("([{", c) >= 0 && !query && closed:
			end = balanced(text, i)
			closed = end > 0
		}
		if end < 0 { // nothing closes it
			end = i + 1
			if i == 0 || text[i-1] == '$' {
				end = len(text)
			}
		}
		i = min(end, len(text))
	}
	return "", text
}

// closing is the place after the quote that ends what begins at a place, or -1.
func closing(text string, from int, quote string) int {
	for i := from; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case text[i] == '\\':
			i++
		}
	}
	return -1
}

// longest is how far a bracket may be from the one that closes it.
const longest = 1 << 11

// balanced is the place after the bracket that closes the one at a place, or -1.
func balanced(text string, from int) int {
	text = text[:min(len(text), from+longest)]
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"' || c == '\'':
			if end := closing(text, i+1, text[i:i+1]); end > 0 {
				i = end - 1
			}
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
