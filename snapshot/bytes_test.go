package snapshot

import (
	"math"
	"strings"
	"testing"
)

func TestBytesPrintThreeDigitsInTheUnitTheyReach(t *testing.T) {
	for _, c := range []struct {
		b    Bytes
		want string
	}{
		{0, "0 B"}, {1, "1 B"}, {1023, "1023 B"}, {-512, "-512 B"}, {1000, "1000 B"},
		{4 * KiB, "4.00 KiB"}, {512 * KiB, "512 KiB"}, {64*MiB + 512*KiB, "64.5 MiB"},
		{1024*KiB - 1, "1.00 MiB"}, {-3 * GiB, "-3.00 GiB"}, {2 * TiB, "2.00 TiB"}, {1 << 62, "4194304 TiB"},
	} {
		if got := c.b.String(); got != c.want {
			t.Errorf("%d prints %q, want %q", int64(c.b), got, c.want)
		}
	}
	if got := FormatBytes(0.5); got != "0.50 B" {
		t.Errorf("half a byte prints %q", got)
	}
}

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Bytes
		ok   bool
	}{
		{"512", 512, true}, {"4KiB", 4096, true}, {"4 kib", 4096, true}, {"1.5MiB", 3 * 512 * KiB, true},
		{"2g", 2 * GiB, true}, {"1MB", 1e6, true}, {"0B", 0, true},
		{"", 0, false}, {"MiB", 0, false}, {"4 apples", 0, false}, {"1e30", 0, false}, {"99999999T", 0, false},
		{"1023TiB", 1023 * TiB, true}, {"10PiB", 0, false}, {"-2eb", 0, false}, {"NaN", 0, false},
	} {
		got, err := ParseBytes(c.in)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d, ok %v", c.in, got, err, c.want, c.ok)
		}
	}
}

func TestASizeBeyondAllMachinesIsToldFromWhatIsNoSize(t *testing.T) {
	for text, want := range map[string]string{"10PiB": "more memory than any machine has", "9999999999999999999TiB": "more memory than any machine has", "10 apples": "is not a size"} {
		if _, err := ParseBytes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestGroupedHasACommaBeforeEachThreeDigits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 26214400: "26,214,400",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
