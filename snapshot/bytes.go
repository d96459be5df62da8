package snapshot

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size or a growth in bytes; it prints and parses in IEC units.
type Bytes int64

// Binary multiples.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

var units = []struct {
	name string
	size Bytes
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// String prints three significant digits in the largest unit that the size
// reaches: "512 B", "64.5 MiB", "-1.25 GiB".
func (b Bytes) String() string { return FormatBytes(float64(b)) }

// FormatBytes is Bytes.String for rates, which need not be whole.
func FormatBytes(b float64) string {
	abs := math.Abs(b)
	for _, u := range units {
		// 1023.95 KiB would round to four digits; it is 1 MiB to a reader.
		if v := b / float64(u.size); abs/float64(u.size) >= 0.9995 {
			return threeDigits(v) + " " + u.name
		}
	}
	if b == math.Trunc(b) {
		return strconv.FormatInt(int64(b), 10) + " B"
	}
	return threeDigits(b) + " B"
}

// Grouped writes 26214400 as 26,214,400.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return sign + b.String()
}

func threeDigits(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// mostParsed is above the memory of any machine: a larger size is a slip.
const mostParsed = 1 << 50

// ParseBytes reads a size such as "4KiB", "1.5 MB", "512" or "2g". Units ending
// in "iB", and bare letters, are binary; "KB", "MB", "GB", "TB" are decimal.
func ParseBytes(s string) (Bytes, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	i := strings.IndexFunc(t, func(r rune) bool { return r != '.' && r != '-' && (r < '0' || r > '9') })
	number, unit := t, ""
	if i >= 0 {
		number, unit = t[:i], strings.TrimSpace(t[i:])
	}
	scale, ok := map[string]float64{
		"": 1, "b": 1,
		"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
		"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
		"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
		"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
		"p": 1 << 50, "pib": 1 << 50, "pb": 1e15,
		"e": 1 << 60, "eib": 1 << 60, "eb": 1e18,
	}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is not a size; write 4KiB, 1.5MiB or 512", s)
	}
	if math.Abs(v*scale) >= mostParsed {
		return 0, fmt.Errorf("%q is more memory than any machine has", s)
	}
	return Bytes(v * scale), nil
}
