// Package memdiag_test holds the laws of the whole module.
package memdiag_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/memdiag/memdiag"

// mayImport lists, for each room, the rooms below it. Folders with rules of
// their own stand beside the rooms; the longest match counts.
var mayImport = map[string][]string{
	"cmd":      {"cmd", "doctor", "fleet", "gate", "watch", "report", "replay", "diff", "snapshot", "engine", "record", "bench/corpus"},
	"doctor":   {"doctor", "gate", "report", "record", "diff", "snapshot"},
	"gate":     {"gate", "report", "diff", "snapshot"},
	"watch":    {"watch", "report", "diff", "snapshot"},
	"fleet":    {"fleet", "report", "diff", "snapshot"},
	"report":   {"report", "replay", "diff", "snapshot"},
	"replay":   {"replay", "snapshot"},
	"diff":     {"diff", "snapshot"},
	"engine":   {"engine", "snapshot"},
	"record":   {"record", "snapshot"},
	"snapshot": {"snapshot"},
	"memtest":  {"memtest", "diff", "engine", "snapshot"},
	"release":  {"record"},             // whose Python package it packs
	"bench":    {"engine", "snapshot"}, // the programs that its scripts time

	"bench/corpus":     {"diff", "engine", "snapshot"},
	"bench/fleet":      {"fleet"},
	"fleet/parquet":    {},
	"fleet/clickhouse": {"fleet/clickhouse", "fleet/parquet"},

	"diff/trend":  {"diff/trend"},                                          // statistics, with no idea of memory
	"diff/judge":  {"diff/judge", "diff/series", "diff/trend", "snapshot"}, // one site, with no other
	"diff/series": {"diff/series", "diff/trend", "snapshot"},               // what sites did, with no verdict
	"engine/mem":  {"engine/mem", "snapshot"},
}

// vagueNames are packages that nobody could write one sentence about.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "internal", "misc", "shared", "base"}

// importFault says why the package in folder from, relative to the module, may
// not import path, or returns "".
func importFault(from, path string) string {
	to, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		if strings.HasPrefix(path, "github.com/spf13/") && !within(from, "cmd") {
			return "only cmd reads command lines"
		}
		return ""
	}
	rule := ""
	for folder := range mayImport {
		if within(from, folder) && len(folder) > len(rule) {
			rule = folder
		}
	}
	if rule == "" {
		return "no rule in mayImport: is this a new room?"
	}
	for _, allowed := range mayImport[rule] {
		if within(to, allowed) {
			return ""
		}
	}
	return fmt.Sprintf("%s may import %s only", rule, strings.Join(mayImport[rule], ", "))
}

// folderFault says what is wrong with the name of a package's folder, or "".
func folderFault(folder string) string {
	for name := range strings.SplitSeq(folder, "/") {
		if slices.Contains(vagueNames, name) {
			return fmt.Sprintf("a package named %s says nothing", name)
		}
	}
	return ""
}

func within(folder, room string) bool {
	return folder == room || strings.HasPrefix(folder, room+"/")
}

func TestImportsPointOneWay(t *testing.T) {
	files := 0
	for folder, path := range goFiles(t) {
		for _, file := range path {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Error(err)
				continue
			}
			files++
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if fault := importFault(folder, imported); fault != "" {
					t.Errorf("%s imports %s: %s", file, imported, fault)
				}
			}
		}
		if fault := folderFault(folder); fault != "" {
			t.Errorf("%s: %s", folder, fault)
		}
	}
	if files < 5 {
		t.Errorf("looked at %d files only: the walk is broken", files)
	}
}

func TestImportRuleCatchesViolations(t *testing.T) {
	for _, c := range []struct {
		name, from, path string
		bad              bool
	}{
		{"snapshot imports no other room", "snapshot", module + "/diff", true},
		{"a reader may use the model", "snapshot/torch", module + "/snapshot", false},
		{"diff may use the model", "diff", module + "/snapshot", false},
		{"diff does not render", "diff", module + "/report", true},
		{"statistics know nothing of memory", "diff/trend", module + "/snapshot", true},
		{"the judge knows no cause", "diff/judge", module + "/diff/cause", true},
		{"series know no verdict", "diff/series", module + "/diff/cause", true},
		{"diff may use its statistics", "diff", module + "/diff/trend", false},
		{"report may use diff", "report", module + "/diff", false},
		{"report does not train", "report", module + "/engine", true},
		{"the engine knows nothing of leaks", "engine/workload", module + "/diff", true},
		{"the engine does not record processes", "engine", module + "/record", true},
		{"the allocator knows no tensors", "engine/mem", module + "/engine", true},
		{"the allocator may fill the model", "engine/mem", module + "/snapshot", false},
		{"record does not judge", "record", module + "/diff", true},
		{"the command knows all", "cmd/memdiag", module + "/engine/workload", false},
		{"nobody imports the command", "report", module + "/cmd/memdiag", true},
		{"a room whose name begins like another is another", "diffs", module + "/snapshot", true},
		{"only the command reads command lines", "report", "github.com/spf13/cobra", true},
		{"the command may read command lines", "cmd/memdiag", "github.com/spf13/cobra", false},
		{"the standard library is everyone's", "snapshot", "io/fs", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if fault := importFault(c.from, c.path); (fault != "") != c.bad {
				t.Errorf("importFault(%q, %q) = %q", c.from, c.path, fault)
			}
		})
	}
}

// startsGoroutines says where a file does, or a test in it runs beside others, or returns "".
func startsGoroutines(fset *token.FileSet, file *ast.File) (where string) {
	ast.Inspect(file, func(n ast.Node) bool {
		started := false
		switch n := n.(type) {
		case *ast.GoStmt:
			started = true
		case *ast.SelectorExpr:
			started = slices.Contains([]string{"Go", "Parallel", "RunParallel", "AfterFunc"}, n.Sel.Name)
		}
		if started && where == "" {
			where = fset.Position(n.Pos()).String()
		}
		return where == ""
	})
	return where
}

// TestWhatIsNotTestedForRacesStartsNoGoroutine, of its own or by what it imports, which
// TestImportsPointOneWay keeps among the same rooms.
func TestWhatIsNotTestedForRacesStartsNoGoroutine(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^sequential='(.+)'$`).FindSubmatch(script)
	if line == nil {
		t.Fatal(".ci/run leaves no rooms out")
	}
	rooms := strings.Split(string(line[1]), "|")
	line = regexp.MustCompile(`(?m)^beside='(.+)'$`).FindSubmatch(script)
	if line == nil {
		t.Fatal(".ci/run has no line beside=")
	}
	beside, starts := string(line[1]), false
	seen := make(map[string]bool)
	for folder, list := range goFiles(t) {
		room := slices.IndexFunc(rooms, func(r string) bool { return within(folder, r) })
		if room < 0 {
			continue
		}
		seen[rooms[room]] = true
		for _, file := range list {
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			where := startsGoroutines(fset, parsed)
			if folder == beside {
				starts = starts || where != ""
				continue
			}
			if where != "" {
				t.Errorf("%s starts a goroutine: take %s off the line sequential= of .ci/run", where, rooms[room])
			}
			for _, i := range parsed.Imports {
				if strings.HasSuffix(strings.Trim(i.Path.Value, `"`), "/"+beside) && !strings.HasSuffix(file, "_test.go") {
					t.Errorf("%s imports %s, which starts goroutines: take %s off the line sequential= of .ci/run", file, beside, rooms[room])
				}
			}
		}
	}
	if !starts {
		t.Errorf("%s starts no goroutine: take it off the line beside= of .ci/run", beside)
	}
	for _, r := range rooms {
		for _, below := range mayImport[r] {
			if !slices.Contains(rooms, below) {
				t.Errorf("%s may import %s, which is tested for races: test %s, too", r, below, r)
			}
		}
		if !seen[r] {
			t.Errorf(".ci/run leaves out %s, where there is nothing", r)
		}
	}
}

func TestStartsOfGoroutinesAreSeen(t *testing.T) {
	for body, starts := range map[string]bool{
		"go f()": true, "group.Go(f)": true, "t.Parallel()": true, "time.AfterFunc(d, f)": true, "defer func() { go f() }()": true, "f()": false, "f(Go, Parallel)": false,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "a.go", "package a; func a() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if where := startsGoroutines(fset, file); (where != "") != starts {
			t.Errorf("%s: found at %q", body, where)
		}
	}
}

func TestFolderRuleCatchesVagueNames(t *testing.T) {
	for folder, bad := range map[string]bool{
		"engine/util": true, "internal/torch": true, "snapshot/common": true, "snapshot": false, "diff/trend": false,
	} {
		if fault := folderFault(folder); (fault != "") != bad {
			t.Errorf("folderFault(%q) = %q", folder, fault)
		}
	}
}

// goFiles maps every folder of the module, "." for its root, to its Go files,
// tests included.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	files := make(map[string][]string)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return fs.SkipDir
			}
			// Tools that need other modules live in a module of their own.
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) == ".go" {
			files[path.Dir(name)] = append(files[path.Dir(name)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
