package fleet

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Engine is what SQL is for.
type Engine string

// Engines.
const (
	DuckDB     Engine = "duckdb"
	ClickHouse Engine = "clickhouse" // also chDB
)

// clickHouseFunctions are those of DuckDB's that docs/queries.md calls, and ClickHouse has by another name or not.
const clickHouseFunctions = `CREATE FUNCTION IF NOT EXISTS arg_min AS (value, by) -> argMin(value, by);
CREATE FUNCTION IF NOT EXISTS arg_max AS (value, by) -> argMax(value, by);
CREATE FUNCTION IF NOT EXISTS epoch_us AS (time) -> toUnixTimestamp64Micro(time);
CREATE FUNCTION IF NOT EXISTS mad AS (value) -> arrayReduce('median', arrayMap(v -> abs(v - arrayReduce('median', groupArray(value))), groupArray(value)));
`

// dialect is how an engine reads the files of a table: every column and in folder the path of the file's folder, which begins equally
// for all tables.
type dialect struct {
	begin, create  string // before all views, and before the name of each
	file, columns  string // reads files that match a pattern, given in quotes; columns leaves out what only file has
	folder, newest string // newest keeps one row a run
}

var dialects = map[Engine]dialect{
	DuckDB: {
		create: "CREATE OR REPLACE VIEW", file: "read_parquet(%s, filename = true)", columns: "* EXCLUDE (filename)", folder: "parse_dirpath(filename)",
		newest: "QUALIFY row_number() OVER (PARTITION BY run ORDER BY added DESC, contains(filename, '" + merged + "') DESC) = 1",
	},
	ClickHouse: {
		begin: clickHouseFunctions, create: "CREATE OR REPLACE VIEW", file: "file(%s, Parquet)", columns: "*", folder: "replaceRegexpOne(_path, '[^/]*$', '')",
		newest: "ORDER BY added DESC, position(_path, '" + merged + "') > 0 DESC LIMIT 1 BY run",
	},
}

// literally is how a pattern of DuckDB's names a folder that has signs of patterns in its name.
var literally = strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]")

// WriteViews writes SQL that makes a view of each table. A run that is in two folders for a moment, while another process merges them,
// counts once.
func WriteViews(w io.Writer, dir string, engine Engine) error {
	d := dialects[engine]
	files := func(table string) string {
		pattern := filepath.Join(literally.Replace(dir), "[0-9]*", "*", table+ending)
		if engine == ClickHouse { // its patterns have no brackets
			pattern = filepath.Join(dir, "{0..9}*", "*", table+ending)
			pattern = strings.ReplaceAll(pattern, `\`, `\\`)
		}
		return fmt.Sprintf(d.file, "'"+strings.ReplaceAll(pattern, "'", "''")+"'")
	}
	var b strings.Builder
	b.WriteString(d.begin)
	fmt.Fprintf(&b, "%s runs AS\nSELECT %s, %s AS folder FROM %s\n%s;\n", d.create, d.columns, d.folder, files("runs"), d.newest)
	for i := range Schema {
		name := Schema[i].Name
		switch {
		case name == "runs":
		case name == functionsTable && !has(dir, name):
			fmt.Fprintf(&b, "%s %s AS SELECT '' AS run, '' AS function, '' AS file WHERE false;\n", d.create, name)
		default:
			fmt.Fprintf(&b, "%s %s AS\nSELECT %s FROM %s\nWHERE (run, %s) IN (SELECT run, folder FROM runs);\n", d.create, name, d.columns, files(name), d.folder)
		}
	}
	return flush(w, &b)
}

// has reports whether any folder has a table.
func has(dir, table string) bool {
	parts, err := list(dir, "")
	return err == nil && slices.ContainsFunc(parts, func(p *Part) bool {
		_, err := os.Stat(p.file(table))
		return err == nil
	})
}
