package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// duckdb is a Python that has DuckDB, which .ci/run installs.
func duckdb(t *testing.T) string { return pythonWith(t, "duckdb") }

func pythonWith(t *testing.T, engine string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	for _, python := range []string{filepath.Join(cache, "memdiag", "duckdb", "bin", "python"), "python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import "+engine).Run() == nil {
			return python
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no %s, which .ci/run installs", engine)
	}
	t.Skipf("no Python with %s: .ci/run installs one", engine)
	return ""
}

// asked runs a script of views and then each query in DuckDB; the answers are rows.
func asked(t *testing.T, python, views string, queries []string) [][][]any {
	t.Helper()
	return answered(t, python, `
import duckdb, json, sys
views, queries = json.load(sys.stdin)
c = duckdb.connect()
c.execute(views)
print(json.dumps([c.execute(q).fetchall() for q in queries], default=str))
`, views, queries)
}

// askedClickHouse does so in chDB, which is ClickHouse within a process.
func askedClickHouse(t *testing.T, python, views string, queries []string) [][][]any {
	t.Helper()
	return answered(t, python, `
import json, sys
from chdb.session import Session
views, queries = json.load(sys.stdin)
s = Session()
s.query("CREATE DATABASE fleet")
s.query("USE fleet")
for view in filter(str.strip, views.split(";\n")):
    s.query(view)
rows = lambda q: json.loads(str(s.query(q.strip().rstrip(";") + " FORMAT JSONCompact SETTINGS output_format_json_quote_64bit_integers = 0")))["data"]
print(json.dumps([rows(q) for q in queries]))
`, views, queries)
}

func answered(t *testing.T, python, program, views string, queries []string) [][][]any {
	t.Helper()
	input, err := json.Marshal([]any{views, queries})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", program)
	cmd.Stdin = bytes.NewReader(input)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var answers [][][]any
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

func views(t *testing.T, dir string, engine Engine) string {
	t.Helper()
	var b strings.Builder
	if err := WriteViews(&b, dir, engine); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheQueriesOfTheDocsRunInDuckDB(t *testing.T) { theQueriesRun(t, DuckDB, duckdb(t), asked) }

func TestTheQueriesOfTheDocsRunInClickHouse(t *testing.T) {
	theQueriesRun(t, ClickHouse, pythonWith(t, "chdb"), askedClickHouse)
}

func theQueriesRun(t *testing.T, engine Engine, python string, ask func(*testing.T, string, string, []string) [][][]any) {
	t.Helper()
	page, err := os.ReadFile("../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		queries = append(queries, m[1])
	}
	if len(queries) != 10 {
		t.Fatalf("the page has %d queries", len(queries))
	}
	dir := filepath.Join(t.TempDir(), "it's a fleet")
	going := testRun{id: "bbbbbbbb00000001", commit: "c2", ranks: 4, prints: []string{"s1-a", "s1-d"}, growth: 100, status: "unfinished", started: epoch.Add(2 * time.Hour), added: epoch.Add(48 * time.Hour)}
	added(t, dir, append(two, going)...)
	series := going.tables()
	series["series"].Append(going.id, 0, 100, epoch, "cuda:0", 5, 6, 7)
	if _, err := Add(dir, series); err != nil {
		t.Fatal(err)
	}
	answers := ask(t, python, views(t, dir, engine), queries)
	for i, rows := range answers {
		if len(rows) == 0 {
			t.Errorf("query %d has no answer", i+1)
		}
	}
	leaks, err := opened(t, dir).Leaks(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(answers[0]) != len(leaks) {
		t.Errorf("%s has %d leaks, memdiag %d", engine, len(answers[0]), len(leaks))
	}
	for _, row := range answers[0] {
		for _, l := range leaks {
			if l.Fingerprint == row[0] && (fmt.Sprint(l.Runs, l.Ranks, float64(l.Leaked)) != fmt.Sprint(row[2], row[3], row[7])) {
				t.Errorf("%s has %v, memdiag %+v", engine, row, l)
			}
		}
	}
	if got := fmt.Sprint(answers[2]); got != "[[s1-a 1 2]]" {
		t.Errorf("cost: %s", got)
	}
	if got := fmt.Sprint(answers[6][0][0]); got != "s1-d" {
		t.Errorf("new at c2: %s", got)
	}
}

func TestEnginesCountARunInTwoPlacesOnce(t *testing.T) {
	for engine, ask := range map[Engine]func(*testing.T, string, string, []string) [][][]any{DuckDB: asked, ClickHouse: askedClickHouse} {
		t.Run(string(engine), func(t *testing.T) {
			python := pythonWith(t, map[Engine]string{DuckDB: "duckdb", ClickHouse: "chdb"}[engine])
			countsOnce(t, engine, python, ask)
		})
	}
}

func countsOnce(t *testing.T, engine Engine, python string, ask func(*testing.T, string, string, []string) [][][]any) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	added(t, dir, two...)
	place, aside := filepath.Join(dir, "2026-03-04", two[0].id), filepath.Join(t.TempDir(), "aside")
	if err := os.CopyFS(aside, os.DirFS(place)); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(dir, epoch); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(place, os.DirFS(aside)); err != nil {
		t.Fatal(err)
	}
	got := ask(t, python, views(t, dir, engine), []string{"SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM findings), (SELECT count(*) FROM ranks)"})
	if fmt.Sprint(got) != "[[[2 16 6]]]" {
		t.Errorf("%v", got)
	}
}

// TestHostileNamesStayNames in SQL and in tables.
func TestHostileNamesStayNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fl'); DROP TABLE x; --*[?]")
	run := two[0]
	run.commit = "c';\x1b[31m DROP TABLE runs; --\n\xff"
	added(t, dir, run)
	var b strings.Builder
	if err := WriteRuns(&b, opened(t, dir).Runs()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b") || strings.Count(b.String(), "\n") != 2 {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	if err := Page(&b, opened(t, dir), "test", epoch); err != nil || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%v, a page with an escape sequence in it", err)
	}
	python := duckdb(t)
	got := asked(t, python, views(t, dir, DuckDB), []string{"SELECT commit FROM runs"})
	if want := "c';\x1b[31m DROP TABLE runs; --\n�"; got[0][0][0] != want {
		t.Errorf("%q", got)
	}
}

// TestTheStepOfARateInSQLIsThatOfTheFolder also where a server computes both branches of if, as those before 21.9 do.
func TestTheStepOfARateInSQLIsThatOfTheFolder(t *testing.T) {
	query := "SELECT " + stepInSQL("rate") + " FROM (SELECT arrayJoin([0., 0.5, 1, 3, inf, nan]) AS rate) SETTINGS short_circuit_function_evaluation = 'disable'"
	out, err := exec.CommandContext(t.Context(), pythonWith(t, "chdb"), "-c", "import chdb, sys; print(chdb.query(sys.argv[1]))", query).CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, []string{"0", "0", "0", "25", "1023", "0"}) {
		t.Errorf("%s %v", out, err)
	}
}
