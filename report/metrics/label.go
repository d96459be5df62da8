package metrics

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestLabel is in characters. Prometheus by default takes any length, and holds all labels in memory.
const longestLabel = 120

// Label makes a value that Prometheus takes and a person can read: valid UTF-8 on one line, without characters that a terminal obeys,
// at most 120 characters. The middle of a longer value is left out.
func Label(value string) string {
	value = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, bounded(value))
	if utf8.RuneCountInString(value) <= longestLabel {
		return value
	}
	runes := []rune(value)
	const half = (longestLabel - 1) / 2
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}

// bounded leaves out the middle of a very long value, so that Label does not scan megabytes for 120 characters.
func bounded(value string) string {
	const side = longestLabel * utf8.UTFMax
	if len(value) <= 2*side {
		return value
	}
	return value[:side] + value[len(value)-side:]
}
