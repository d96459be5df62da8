package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		name, file string
		result     *diff.Result
	}{
		{"a leak among others", "leak.csv.golden", pyramidResult(t)},
		{"hostile names are cells", "hostile.csv.golden", attacked(t)},
		{"nothing is a head", "empty.csv.golden", analyzed(t, empty())},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rendered(t, func(b *bytes.Buffer) error { return CSV(b, c.result) })
			golden(t, c.file, got)
			lines, err := csv.NewReader(bytes.NewReader(got)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var sum snapshot.Bytes
			for _, line := range lines[1:] {
				n, err := strconv.ParseInt(line[11], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += snapshot.Bytes(n)
			}
			if lines[0][11] != "growth_bytes" || sum != c.result.Growth().Bytes {
				t.Errorf("column %s sums to %d, want %d", lines[0][11], sum, c.result.Growth().Bytes)
			}
		})
	}
}

func TestANameIsNoFormula(t *testing.T) {
	for name, want := range map[string]string{"=1+1": "'=1+1", "@a": "'@a", "-x.py:3": "'-x.py:3", "+x": "'+x", "a.py:3": "a.py:3", "": ""} {
		if got := noFormula(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	hostileMarkdown := []snapshot.Frame{{Function: "f`](x)|<b>@team``` ", File: "*a*_b_[c](http://x)|`.py", Line: 3}}
	for _, c := range []struct {
		name, file string
		result     *diff.Result
	}{
		{"a leak with its stack folded", "leak.md.golden", pyramidResult(t)},
		{"hostile names are text", "hostile.md.golden", attacked(t)},
		{"names with Markdown in them are text", "markup.md.golden", analyzed(t, pair(hostileMarkdown))},
		{"nothing at all", "empty.md.golden", analyzed(t, empty())},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(rendered(t, func(b *bytes.Buffer) error { return Markdown(b, c.result, TextOptions{}) }))
			golden(t, c.file, []byte(got))
			for _, line := range strings.Split(got, "\n") {
				if strings.HasPrefix(line, "| inconclusive") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 7 {
					t.Errorf("a name adds a cell: %s", line)
				}
			}
		})
	}
}

func TestCodeSpanHoldsBackticks(t *testing.T) {
	for text, want := range map[string]string{"a": "`a`", "a`b": "`` a`b ``", "```": "```` ``` ````"} {
		if got := codeSpan(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
