package judge

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of rules into docs/rules.md anew")

// TestTheDocsListTheRules holds the table of docs/rules.md against the rules.
func TestTheDocsListTheRules(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "rules.md")
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rules: go test ./diff/judge -run Docs -update -->\n", "<!-- end of rules -->"
	before, rest, found := bytes.Cut(got, []byte(begin))
	table, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	want := rulesTable()
	if string(table) == want {
		return
	}
	if !*update {
		t.Fatalf("the table in %s differs from the rules: go test ./diff/judge -run Docs -update writes it", page)
	}
	if err := os.WriteFile(page, []byte(string(before)+begin+want+end+string(after)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rulesTable() string {
	var b strings.Builder
	fmt.Fprint(&b, "\n| rule | holds if | then |\n|---|---|---|\n")
	for _, rules := range [][]rule{seriesRules, pairRules} {
		for _, r := range rules {
			verdict := string(r.verdict)
			if r.verdict == Leak || r.verdict == Bounded {
				verdict += ", " + string(r.evidence)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, r.asks, verdict)
		}
	}
	return b.String() + "\n"
}
