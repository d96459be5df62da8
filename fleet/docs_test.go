package fleet

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/fleet/parquet"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/fleet-tables.md")

// kinds are what the page calls them.
var kinds = map[parquet.Kind]string{parquet.Text: "text", parquet.Int: "integer", parquet.Float: "float", parquet.Time: "time"}

const (
	tablesBegin = "<!-- tables, written by go test ./fleet -update -->\n"
	tablesEnd   = "<!-- end of tables -->\n"
)

func TestThePageHasAllColumns(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nEach table begins with the column `run`: %s. `rank` is %s.\n", runColumn.About, rankColumn.About)
	for _, table := range Schema {
		fmt.Fprintf(&b, "\n### %s\n\nA row is %s.\n\n| column | kind | what it is |\n|---|---|---|\n", table.Name, table.About)
		var names []string
		for i, c := range table.Columns {
			if c == runColumn {
				continue
			}
			names = append(names, "`"+c.Name+"`")
			if next := i + 1; next < len(table.Columns) && table.Columns[next].Kind == c.Kind && c.About == "" && table.Columns[next].About == "" {
				continue // one row for both
			}
			about := c.About
			if c == rankColumn {
				about = ""
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), kinds[c.Kind], about)
			names = nil
		}
	}
	b.WriteString("\n")
	const path = "../docs/fleet-tables.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tablesBegin)
	has, after, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		t.Fatal("the page has no place for its tables")
	}
	if has == b.String() {
		return
	}
	if !*update {
		t.Fatal("the page's tables are not those of the schema: go test ./fleet -run Page -update")
	}
	if err := os.WriteFile(path, []byte(before+tablesBegin+b.String()+tablesEnd+after), 0o666); err != nil {
		t.Fatal(err)
	}
}
