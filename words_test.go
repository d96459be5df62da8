package memdiag_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dialect are turns of phrase that readers stumbled over, with plain ones. CONTRIBUTING.md has
// the list with its reasons.
var dialect = map[string]string{
	`\bbehind (the|each|an?) (step|epoch|run|snapshot|evaluation)\b`: "after",
	`\bnobody (told|knows|counted|recorded)\b`:                       "unknown",
	`\b(is|are|was|were|not) told\b`:                                 "known, recorded, reported",
	`\btold (by|from|in)\b`:                                          "known, recorded, reported",
	`\bof (which|whom)\b`:                                            "a new sentence",
	`\bbesides\b`:                                                    "also",
	`\bholds? (where|whether)\b`:                                     "reports whether",
	`\b(longer run|more snapshots) decides?\b`:                       "run longer, take more snapshots",
	`\blonger run must\b`:                                            "only a longer run can",
	`\bgoe?s? on (growing|being)\b`:                                  "keeps growing",
	`\bever more rarely\b`:                                           "more and more rarely",
	`\bno longer ago than\b`:                                         "a new sentence",
	`\bmade anew\b`:                                                  "recreated",
	`\b(gives?|given) back\b`:                                        "frees, returns",
}

// dialectIn returns the first such phrase of a text with what to say, or "".
func dialectIn(text string) string {
	for pattern, better := range dialect {
		if found := regexp.MustCompile(pattern).FindString(text); found != "" {
			return strconv.Quote(found) + ": say " + better
		}
	}
	return ""
}

func TestDocsAreInPlainEnglish(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		if page == "docs/causes.md" { // the catalogue's, which is Go
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if fault := dialectIn(line); fault != "" {
				t.Errorf("%s:%d: %s", page, i+1, fault)
			}
		}
	}
}

// printing are the folders whose strings reach users.
var printing = []string{"cmd", "diff", "doctor", "fleet", "gate", "record", "report", "watch"}

// TestOutputIsInPlainEnglish looks at the sentences among the strings of what prints them.
func TestOutputIsInPlainEnglish(t *testing.T) {
	for folder, list := range goFiles(t) {
		if !slices.ContainsFunc(printing, func(of string) bool { return within(folder, of) }) || within(folder, "diff/cause") {
			continue
		}
		for _, name := range list {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || strings.Count(lit.Value, " ") < 3 {
					return true
				}
				if fault := dialectIn(lit.Value); fault != "" {
					t.Errorf("%s: %s", fset.Position(lit.Pos()), fault)
				}
				return true
			})
		}
	}
}

// stringOfPython is a string of Python on one line.
var stringOfPython = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)

// TestTheAgentSaysItInPlainEnglish looks at the sentences of the Python package: notes of a run, and errors.
func TestTheAgentSaysItInPlainEnglish(t *testing.T) {
	files, err := filepath.Glob("record/agent/memdiag/*.py")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, said := range stringOfPython.FindAllString(line, -1) {
				if fault := dialectIn(said); fault != "" && strings.Count(said, " ") >= 3 {
					t.Errorf("%s:%d: %s", name, i+1, fault)
				}
			}
		}
	}
}

// inComments are those of the dialect that have no plain use in a comment, and one more: a doc
// comment says "reports whether".
var inComments = regexp.MustCompile(`\b(is|are|was|were|not) told\b|\btold (by|from|in)\b|\bmade anew\b|\bever more rarely\b|` +
	`\bbehind (the|each|an?) (step|epoch|run|snapshot|evaluation)\b|^\w+ holds? (for|if|when|where)\b`)

func TestCommentsAreInPlainEnglish(t *testing.T) {
	for _, list := range goFiles(t) {
		for _, name := range list {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range file.Comments {
				if found := inComments.FindString(group.Text()); found != "" && name != "words_test.go" {
					t.Errorf("%s: %q", fset.Position(group.Pos()), found)
				}
			}
		}
	}
}

func TestDialectIsFound(t *testing.T) {
	for text, found := range map[string]bool{
		"remove it behind the step": true, "stacks, of which most leak": true, "a longer run decides": true, "its size is not told": true,
		"behind a gradient": false, "told apart": false, "run longer to decide": false,
	} {
		if got := dialectIn(text); (got != "") != found {
			t.Errorf("%q: %q", text, got)
		}
	}
}
