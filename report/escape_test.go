package report

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a b", "\x1b[31m", "\u202e", "a\xffb", `\x1b`, "\u00a0", "训练"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q gives broken text %q", s, got)
		}
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Errorf("%q gives %q, which holds %U", s, got, r)
			}
		}
		if again := Printable(got); again != got {
			t.Errorf("%q is escaped twice: %q", got, again)
		}
	})
}

// Folding moves words, and parts of paths, to other lines and does nothing else;
// no line is too wide unless a part is.
func TestProseKeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z:/.]{1,30}`), 1, 40).Draw(t, "words")
		width := rapid.IntRange(1, 100).Draw(t, "width")
		p := newPage(TextOptions{Width: width})
		p.prose("", "  ", strings.Join(words, " "))
		text := p.buf.String()
		// A line that ends in a slash goes on without a space, or with one.
		got, whole := strings.Fields(text), strings.Join(words, " ")
		for i, part := range got {
			rest, ok := strings.CutPrefix(whole, part)
			if !ok || i > 0 && whole == "" {
				t.Fatalf("words %q became %q", words, got)
			}
			spaceless := strings.TrimPrefix(rest, " ")
			if spaceless == rest && rest != "" && !strings.HasSuffix(part, "/") {
				t.Fatalf("word %q is cut behind %q", words, part)
			}
			whole = spaceless
		}
		if whole != "" {
			t.Fatalf("words %q became %q", words, got)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if visible(line) > width && len(strings.Fields(line)) > 1 {
				t.Fatalf("%d columns, want %d: %q", visible(line), width, line)
			}
		}
	})
}

// TestAPathThroughAChainOfTuplesIsShort: one through 64 of them filled three lines of a terminal.
func TestAPathThroughAChainOfTuplesIsShort(t *testing.T) {
	for path, want := range map[string]string{
		"box.prev" + strings.Repeat("[…]", 64) + ".x": "box.prev[…]…[…].x",
		"box.prev[…][…][…]":                           "box.prev[…][…][…]",
		"box.prev['a']":                               "box.prev['a']",
	} {
		if got := brief(path); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
