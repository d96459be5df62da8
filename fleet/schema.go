// Package fleet is a store of many runs: tables of Parquet files in a folder, which memdiag adds
// runs to and asks, and which DuckDB or ClickHouse can read as they are.
package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/fleet/parquet"
)

// Version is the version of the tables. It increases when a column changes its meaning or is removed. New columns do not change it.
const Version = 1

// versionNote is what each file says of its version.
const versionNote = "memdiag.fleet.version"

// TableSchema is one table.
type TableSchema struct {
	Name    string
	About   string // what a row is
	Columns []ColumnSchema
}

// ColumnSchema is one of its columns.
type ColumnSchema struct {
	Name  string
	Kind  parquet.Kind
	About string
}

func text(name, about string) ColumnSchema   { return ColumnSchema{name, parquet.Text, about} }
func number(name, about string) ColumnSchema { return ColumnSchema{name, parquet.Int, about} }
func float(name, about string) ColumnSchema  { return ColumnSchema{name, parquet.Float, about} }
func moment(name, about string) ColumnSchema { return ColumnSchema{name, parquet.Time, about} }

var (
	runColumn  = text("run", "the run's id")
	rankColumn = number("rank", "the rank; -1 in a run without ranks")
)

// Schema is all tables. An unknown text is empty, an unknown whole number -1, an unknown time 1970-01-01.
// Rates are 0 where none is known.
var Schema = []TableSchema{
	{"runs", "a run", []ColumnSchema{
		runColumn, text("name", "the name of its folder"), text("path", "its folder as an absolute path"),
		moment("added", "when it was added"), moment("started", ""), moment("ended", ""),
		text("status", "ended, failed, killed, out of memory, or unfinished"), number("exit_code", ""),
		text("command", "words separated by spaces"), text("workload", ""), text("commit", "the code's, as --commit or CI names it"),
		text("library", "the writer of the snapshots, with its version"), text("memdiag", "memdiag's version"),
		number("ranks", ""), number("hosts", ""), number("gpus", "devices of its ranks, without CPUs"),
		number("steps", "of the last snapshot"), float("seconds", "from the first snapshot to the last"),
		text("verdict", "leak, inconclusive or clean"), number("leaks", "leaking call sites, over all ranks"),
		number("live_bytes", "live at the end on all ranks"), number("growth_bytes", "between first and last snapshot on all ranks"),
	}},
	{"hosts", "a machine of a run", []ColumnSchema{
		runColumn, text("host", ""), number("ranks", ""), number("processes", "the most at one time"),
		number("peak_bytes", "peak of its processes' resident memory"), number("limit_bytes", "the control group's limit"),
		number("killed", "processes that the kernel killed when memory ran out"),
	}},
	{"ranks", "a rank of a run; a run without ranks has one", []ColumnSchema{
		runColumn, rankColumn, text("host", ""), text("device", "the device that holds most"),
		number("stage", "the pipeline stage"), number("replica", "the data-parallel replica"),
		text("verdict", ""), number("leaks", ""), number("snapshots", ""), number("first_step", ""), number("last_step", ""),
		number("live_bytes", "at the end"), number("growth_bytes", "between first and last snapshot"), number("reserved_bytes", "at the end"),
		number("peak_bytes", ""), number("limit_bytes", "the device's memory"),
		float("slope_bytes", "growth of live memory per step (Theil–Sen)"), float("slope_per_second", "the same per second"),
		number("runs_out_step", "the step at which memory is full at this rate"), moment("runs_out_at", "its time"),
	}},
	{"processes", "a process of a run", []ColumnSchema{
		runColumn, text("host", ""), number("pid", ""), number("parent", ""), text("role", ""),
		moment("first_seen", ""), moment("last_seen", ""),
		number("first_bytes", "private memory when it was first seen"), number("last_bytes", ""), number("peak_bytes", ""),
	}},
	{"sites", "a call site of a rank that grew or shrank, or holds much", []ColumnSchema{
		runColumn, rankColumn, text("site", "the hash of its stack"), text("fingerprint", "the gate's; it does not change if lines move"), text("device", ""),
		text("place", "the line"), text("verdict", "its finding's"),
		number("before_blocks", ""), number("before_bytes", ""), number("after_blocks", ""), number("after_bytes", ""),
	}},
	{"frames", "a frame of a call site's stack", []ColumnSchema{
		runColumn, text("site", ""), number("depth", "0 is the innermost"), text("function", ""), text("file", ""), number("line", ""),
	}},
	{functionsTable, "a function of the program's own that ran", []ColumnSchema{
		runColumn, text("function", ""), text("file", ""),
	}},
	{"series", "memory of a rank's device at a snapshot", []ColumnSchema{
		runColumn, rankColumn, number("step", ""), moment("time", ""), text("device", ""),
		number("allocated_bytes", ""), number("reserved_bytes", ""), number("driver_bytes", "the driver's or the process's figure"),
	}},
	{"findings", "a finding of a rank", []ColumnSchema{
		runColumn, rankColumn, text("fingerprint", ""), text("site", "its largest stack's"), text("device", ""), text("place", ""), text("role", "if the process is not the rank's own"),
		text("verdict", "leak, inconclusive or bounded"), text("evidence", "strong, fair or weak"),
		text("unit", "step, second or batch"), float("rate_bytes", ""), float("rate_low", "the end of a 95 % interval"), float("rate_high", ""),
		float("rate_per_second", "bytes"), number("growth_bytes", ""), number("growth_blocks", ""), number("after_bytes", ""), text("cause", "memdiag explain CAUSE"),
		number("runs_out_step", ""), moment("runs_out_at", ""),
	}},
	{"holders", "what holds a finding's memory", []ColumnSchema{
		runColumn, rankColumn, text("fingerprint", ""), text("kind", ""), text("holder", ""), number("items", ""),
	}},
	{"verdicts", "what memdiag says of a rank", []ColumnSchema{
		runColumn, rankColumn, text("verdict", ""), text("sentence", ""), text("not_seen", "the part of the run without a verdict"),
	}},
}

// functionsTable came after the others: folders that an older memdiag wrote have none, and nothing is known of it there.
const functionsTable = "functions"

// TableNamed is the schema of a table; nil for no such one.
func TableNamed(name string) *TableSchema {
	for i := range Schema {
		if Schema[i].Name == name {
			return &Schema[i]
		}
	}
	return nil
}

// Tables are the rows of one or more runs.
type Tables map[string]*Rows

// Rows are the rows of one table.
type Rows struct {
	Schema  *TableSchema
	Columns []parquet.Column
}

// NewTables are all tables, empty.
func NewTables() Tables {
	t := make(Tables)
	for i := range Schema {
		t[Schema[i].Name] = newRows(&Schema[i])
	}
	return t
}

func newRows(s *TableSchema) *Rows {
	r := &Rows{Schema: s}
	for _, c := range s.Columns {
		r.Columns = append(r.Columns, parquet.Column{Name: c.Name, Kind: c.Kind})
	}
	return r
}

// Len counts the rows.
func (r *Rows) Len() int { return r.Columns[0].Len() }

// longest is how much of a text is stored, in bytes.
const longest = 4096

// Append appends a row; the values are in the order of the columns.
func (r *Rows) Append(values ...any) {
	if len(values) != len(r.Columns) {
		panic(fmt.Sprintf("%s has %d columns, not %d", r.Schema.Name, len(r.Columns), len(values)))
	}
	for i, v := range values {
		c := &r.Columns[i]
		switch v := v.(type) {
		case string:
			if len(v) > longest {
				v = v[:longest]
			}
			c.Texts = append(c.Texts, strings.ToValidUTF8(v, "�"))
		case int64:
			c.Ints = append(c.Ints, v)
		case int:
			c.Ints = append(c.Ints, int64(v))
		case float64:
			c.Floats = append(c.Floats, v)
		case time.Time:
			c.Ints = append(c.Ints, micros(v))
		default:
			panic(fmt.Sprintf("%s.%s: a %T", r.Schema.Name, c.Name, v))
		}
	}
}

// micros is 0 for no time, and for one that 64 bits do not hold.
func micros(t time.Time) int64 {
	if t.IsZero() || t.Year() < 1970 || t.Year() > 9999 {
		return 0
	}
	return t.UnixMicro()
}

// notes are what each file says of itself.
func notes() map[string]string { return map[string]string{versionNote: strconv.Itoa(Version)} }
