package report

import (
	"bytes"
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
)

// CSV writes the rows of JSON as a table with a header: one line per call site that changed, largest growth first. Columns are named
// like the keys of JSON, and sizes are bytes. A name that a spreadsheet would take for a formula gets an apostrophe in front. Leaks in
// other processes follow, with the role of the process in the last column.
func CSV(w io.Writer, r *diff.Result) error {
	var b bytes.Buffer
	table := csv.NewWriter(&b)
	head := []string{"device", "stack_hash", "where", "verdict"}
	tallies := []string{"before", "after", "growth", "born", "died"}
	for _, name := range tallies {
		head = append(head, name+"_blocks", name+"_bytes", name+"_requested_bytes")
	}
	_ = table.Write(append(head, "process")) // a bytes.Buffer does not fail
	write := func(row *rowJSON, process string) {
		line := []string{row.Device, row.Hash, noFormula(row.Where), row.Verdict}
		for _, t := range []tallyJSON{row.Before, row.After, row.Growth, row.Born, row.Died} {
			blocks := "" // not counted
			if t.Blocks != nil {
				blocks = strconv.FormatInt(*t.Blocks, 10)
			}
			line = append(line, blocks, strconv.FormatInt(t.Bytes, 10), strconv.FormatInt(t.Requested, 10))
		}
		_ = table.Write(append(line, noFormula(process)))
	}
	for _, row := range changedRows(r) {
		write(&row, "")
	}
	for _, c := range r.Children {
		for _, row := range changedRows(c.Result) {
			write(&row, Printable(c.Role))
		}
	}
	table.Flush()
	_, err := w.Write(b.Bytes())
	return err
}

// noFormula prevents a spreadsheet from computing a name from a file.
func noFormula(name string) string {
	if name != "" && strings.ContainsRune("=+-@", rune(name[0])) {
		return "'" + name
	}
	return name
}
