package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/record/recordtest"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// TestDocsRun runs what README.md and docs/*.md show: every block fenced as
// console whose first line is "$ memdiag …" or "$ go …". The blocks of one page
// share a folder, in which testdata is the repository's. CONTRIBUTING.md tells
// how a block is written.
func TestDocsRun(t *testing.T) {
	t.Parallel()
	if heavytest.Race {
		t.Skip("the docs train for minutes under the race detector; they are run without it")
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(repository, "README.md")
	if _, err := os.Stat(readme); err == nil {
		pages = append(pages, readme)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			blocks := consoleBlocks(string(text))
			if page == readme && len(blocks) == 0 {
				t.Error("no console block that runs: the first screen shows a command with its output")
			}
			for _, fault := range newSession(t, repository).faults(t, blocks) {
				t.Error(fault)
			}
		})
	}
}

// faults runs the blocks of one page and says, with the line of the page, what
// was not as shown.
func (s *session) faults(t *testing.T, blocks []block) []string {
	var list []string
	for _, b := range blocks {
		commands := b.commands()
		for i, c := range commands {
			got, code := s.run(t, c.line)
			if diff := matchOutput(c.output, got); diff != "" {
				list = append(list, fmt.Sprintf("line %d: $ %s\n(- the page, + the command)\n%s", c.at, c.line, diff))
			}
			asked := i+1 < len(commands) && commands[i+1].line == "echo $?"
			if code != 0 && !asked {
				list = append(list, fmt.Sprintf("line %d: $ %s: exit code %d, which the page does not show with $ echo $?", c.at, c.line, code))
			}
		}
	}
	return list
}

// block is the inside of a fence.
type block struct {
	at    int // line of the page on which it begins, from 1
	lines []string
}

// shown is a command and the output that the page gives it.
type shown struct {
	at     int
	line   string
	output []string
}

// consoleBlocks finds the blocks of a page that are run.
func consoleBlocks(page string) []block {
	var blocks []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		switch {
		case open != nil && strings.HasPrefix(line, "```"):
			if len(open.lines) > 0 && (strings.HasPrefix(open.lines[0], "$ memdiag ") || strings.HasPrefix(open.lines[0], "$ go ")) {
				blocks = append(blocks, *open)
			}
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		case strings.TrimSpace(line) == "```console":
			open = &block{at: i + 2}
		}
	}
	return blocks
}

// commands splits a block at its prompts. A command goes on after a backslash at
// the end of its line.
func (b block) commands() []shown {
	var list []shown
	goesOn := false
	for i, line := range b.lines {
		command, prompt := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			list[len(list)-1].line += "\n" + line
		case prompt:
			list = append(list, shown{at: b.at + i, line: command})
		default:
			last := &list[len(list)-1] // a block begins with a prompt
			last.output = append(last.output, line)
			continue
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return list
}

// session is the shell that a reader of one page sits at.
type session struct {
	repository string
	dir        string // where the reader is
	bin        string // where go install puts things
	code       int    // of the last command
}

func newSession(t *testing.T, repository string) *session {
	s := &session{repository: repository, dir: t.TempDir(), bin: t.TempDir()}
	if err := os.Symlink(filepath.Join(repository, "testdata"), filepath.Join(s.dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	return s
}

// run returns what a command writes to both its streams, and its exit code. The
// go command runs in the repository, everything else where the reader is; go run
// of memdiag is memdiag, so that its files do not end up in the repository.
func (s *session) run(t *testing.T, line string) (string, int) {
	t.Helper()
	if to, ok := strings.CutPrefix(line, "cd "); ok {
		s.dir = filepath.Join(s.dir, to)
		s.code = 0
		return "", 0
	}
	if args, ok := strings.CutPrefix(line, "go run ./cmd/memdiag "); ok {
		line = "memdiag " + args
	}
	if strings.HasPrefix(line, "go test") {
		t.Fatalf("$ %s: this test would run itself; fence it as sh, which is not run", line)
	}
	cmd := recordtest.Command(t, "sh", "-c", fmt.Sprintf("(exit %d)\n%s", s.code, line))
	cmd.Dir = s.dir
	if strings.HasPrefix(line, "go ") {
		cmd.Dir = s.repository
	}
	cmd.Env = append(cmd.Env, "PWD="+cmd.Dir, "GOBIN="+s.bin, "TERM=dumb")
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("$ %s: %v", line, err)
	}
	s.code = cmd.ProcessState.ExitCode()
	return progressLine.ReplaceAllString(string(output), ""), s.code
}

// progressLine is shown every ten seconds, and so on a slow machine only.
var progressLine = regexp.MustCompile(`(?m)^memdiag: .*\bstep \d+ of \d+.*\n`)

// matchOutput compares what a page shows with what a command wrote and returns
// the difference, or "". An ellipsis in a line stands for any text, a line of
// nothing else for any number of lines. White space at the ends of lines, and
// empty lines at the end, do not count.
func matchOutput(page []string, got string) string {
	const ellipsis = "…"
	want := trimLines(strings.Join(page, "\n"))
	got = trimLines(got)
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range strings.Split(want, "\n") {
		if strings.TrimSpace(line) == ellipsis {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), ellipsis, ".*") + `\n`)
	}
	pattern.WriteString(`\z`)
	if regexp.MustCompile(pattern.String()).MatchString(got + "\n") {
		return ""
	}
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestOutputOfDocsIsCompared(t *testing.T) {
	for _, c := range []struct {
		name, page, got string
		same            bool
	}{
		{"equal text", "a\nb", "a\nb\n", true},
		{"nothing shown for nothing written", "", "", true},
		{"nothing shown for something written", "", "a\n", false},
		{"something shown for nothing written", "a", "", false},
		{"another word", "a 1", "a 2\n", false},
		{"a line too few", "a", "a\nb\n", false},
		{"a line too many", "a\nb", "a\n", false},
		{"an ellipsis stands for a number", "took … s", "took 0.12 s\n", true},
		{"an ellipsis does not reach over a line", "took … s", "took 0.12\nmore s\n", false},
		{"an ellipsis line stands for lines", "a\n…\nz", "a\nb\nc\nz\n", true},
		{"an ellipsis line stands for no line", "a\n…\nz", "a\nz\n", true},
		{"an ellipsis line does not hide what follows", "a\n…\nz", "a\nb\n", false},
		{"an ellipsis line at the end", "a\n  …", "a\nb\n", true},
		{"signs of patterns are plain text", "a.b (x)*", "a.b (x)*\n", true},
		{"a point is no pattern", "a.b", "axb\n", false},
		{"space at the end of a line", "a", "a  \n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := matchOutput(strings.Split(c.page, "\n"), c.got); (diff == "") != c.same {
				t.Errorf("difference %q", diff)
			}
		})
	}
}

func TestBlocksOfDocsAreFound(t *testing.T) {
	page := strings.Join([]string{
		"# Title", "```sh", "$ memdiag not run", "```",
		"```console", "$ memdiag diff \\", "    a b", "out", "$ echo $?", "1", "```",
		"```console", "not a prompt", "```",
		"```console", "$ python train.py", "```",
		"```console", "$ go version", "…", "```", "```console", "$ memdiag never closed",
	}, "\n")
	var got []string
	for _, b := range consoleBlocks(page) {
		for _, c := range b.commands() {
			got = append(got, strconv.Itoa(c.at)+" "+c.line+" => "+strings.Join(c.output, "|"))
		}
	}
	want := []string{"6 memdiag diff \\\n    a b => out", "9 echo $? => 1", "19 go version => …"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSessionOfDocs(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, repository)
	for _, c := range []struct {
		line, output string
		code         int
	}{
		{"memdiag --quiet zebra", "memdiag: unknown command \"zebra\"\nhint: memdiag --help lists the commands\n", 2},
		{"echo $?", "2\n", 0},
		{"memdiag help exit-codes | head -n 1", "Exit codes, the same for all commands:\n", 0},
		{"mkdir run", "", 0},
		{"cd run", "", 0},
		{"pwd", filepath.Join(s.dir, "run") + "\n", 0},
		{"test -L ../testdata", "", 0},
		{"go list -m", "github.com/memdiag/memdiag\n", 0},
	} {
		output, code := s.run(t, c.line)
		if output != c.output || code != c.code {
			t.Errorf("$ %s: %q, code %d; want %q, code %d", c.line, output, code, c.output, c.code)
		}
	}
}

func TestFaultsOfDocsAreFound(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		lines  []string
		faults []string // how each begins
	}{
		{"a page that shows what happens", []string{"$ memdiag version", "memdiag …"}, nil},
		{"a page that shows something else", []string{"$ memdiag version", "memdiag 0.0.0"}, []string{"line 2: $ memdiag version\n"}},
		{"a code that the page asks for", []string{"$ memdiag -q zebra", "…", "$ echo $?", "2"}, nil},
		{"a code that the page shows wrong", []string{"$ memdiag -q zebra", "…", "$ echo $?", "0"}, []string{"line 4: $ echo $?\n"}},
		{"a code that the page keeps quiet about", []string{"$ memdiag -q zebra", "…"}, []string{"line 2: $ memdiag -q zebra: exit code 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := "```console\n" + strings.Join(c.lines, "\n") + "\n```\n"
			got := newSession(t, repository).faults(t, consoleBlocks(page))
			if len(got) != len(c.faults) {
				t.Fatalf("faults %q, want %q", got, c.faults)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.faults[i]) {
					t.Errorf("fault %q, want %q …", got[i], c.faults[i])
				}
			}
		})
	}
}
