package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite NOTICE, from the modules of all systems")

// licensed is a file with the terms of something in the binary.
type licensed struct{ of, file, text string }

// termsName are the names of such files. Of what freetype offers, its own licence is chosen, not the GPL.
var termsName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents|ftl|ofl)([-_.].*)?$`)

// module is what go list says of one.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// listed is what it says of a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *module
}

// packagesOf lists the packages of the binary.
func packagesOf(t *testing.T, environment ...string) (list []listed) {
	t.Helper()
	for _, tags := range []string{"", "static"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "-tags="+tags, ".")
		cmd.Env = append(os.Environ(), append(environment, "CGO_ENABLED=0")...)
		out, err := cmd.Output()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("no go command here")
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			list = append(list, p)
		}
	}
	return list
}

// termsOf finds the terms of a binary's packages: the files in their folders and in those above
// them, and of memdiag itself those of what lies below them as well.
func termsOf(t *testing.T, environment ...string) (found []licensed) {
	t.Helper()
	seen := make(map[string]bool)
	add := func(of, root, dir string) (some bool) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || !termsName.MatchString(e.Name()) || e.Name() == "NOTICE" && of == "memdiag" {
				continue
			}
			some = true
			path := filepath.Join(dir, e.Name())
			if seen[path] {
				continue
			}
			seen[path] = true
			text, err := os.ReadFile(path)
			name, rel := filepath.Rel(root, path)
			if err := errors.Join(err, rel); err != nil {
				t.Fatal(err)
			}
			found = append(found, licensed{of, filepath.ToSlash(name), string(text)})
		}
		return some
	}
	for _, p := range packagesOf(t, environment...) {
		if p.Standard || p.Module == nil {
			continue
		}
		of := p.Module.Path + " " + p.Module.Version
		if p.Module.Main {
			of = "memdiag"
			err := filepath.WalkDir(p.Dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.IsDir() && e.Name() != "testdata" {
					add(of, p.Module.Dir, path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		some := false
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			some = add(of, p.Module.Dir, dir) || some
			if dir == p.Module.Dir {
				break
			}
		}
		if more := filepath.Join(p.Module.Dir, "licenses"); isFolder(more) {
			add(of, p.Module.Dir, more)
		}
		if !some {
			t.Errorf("%s has no licence", of)
		}
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	for _, name := range []string{"LICENSE", "PATENTS"} { // some systems put them elsewhere
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			found = append(found, licensed{"Go, its standard library", name, string(text)})
		}
	}
	return found
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// plainTerms is a text as NOTICE has it.
func plainTerms(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		b.WriteString(strings.TrimRight(line, " \t\n\f") + "\n")
	}
	return strings.Trim(b.String(), "\n") + "\n"
}

var (
	double = strings.Repeat("=", 80)
	single = strings.Repeat("-", 80)
)

// noticeOf is NOTICE: each text once, below the names of all that it is for.
func noticeOf(terms []licensed) string {
	of := make(map[string][]string) // by text
	for _, l := range terms {
		text, name := plainTerms(l.text), l.of+": "+l.file
		if !slices.Contains(of[text], name) {
			of[text] = append(of[text], name)
		}
	}
	var texts []string
	for text := range of {
		slices.Sort(of[text])
		texts = append(texts, text)
	}
	first := func(text string) (own int, name string) {
		i := slices.IndexFunc(of[text], func(name string) bool { return strings.HasPrefix(name, "memdiag: ") })
		if i >= 0 {
			return 0, of[text][i]
		}
		return 1, of[text][0]
	}
	slices.SortFunc(texts, func(a, b string) int {
		own1, name1 := first(a)
		own2, name2 := first(b)
		return cmp.Or(own1-own2, strings.Compare(name1, name2))
	})
	var b strings.Builder
	b.WriteString("memdiag, and what its binary contains, with the terms of each. Made by\ngo test ./cmd/memdiag -run Notice -update\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s", double, strings.Join(of[text], "\n"), single, text)
	}
	return b.String()
}

func TestNoticeHasTheLicencesOfAllInTheBinary(t *testing.T) {
	if *update {
		var terms []licensed
		for _, system := range []string{"linux", "darwin", "windows"} {
			for _, processor := range []string{"amd64", "arm64"} {
				terms = append(terms, termsOf(t, "GOOS="+system, "GOARCH="+processor)...)
			}
		}
		if err := os.WriteFile("NOTICE", []byte(noticeOf(terms)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string) // by what they are for
	for _, section := range strings.Split(string(text), "\n"+double+"\n")[1:] {
		names, terms, ok := strings.Cut(section, "\n"+single+"\n\n")
		if !ok {
			t.Fatalf("a section without terms: %.100s", section)
		}
		for name := range strings.SplitSeq(names, "\n") {
			sections[name] = terms
		}
	}
	terms := termsOf(t)
	for _, l := range terms {
		if got, ok := sections[l.of+": "+l.file]; !ok || strings.TrimSpace(got) != strings.TrimSpace(plainTerms(l.text)) {
			t.Errorf("NOTICE lacks %s: %s as it is: go test ./cmd/memdiag -run Notice -update", l.of, l.file)
		}
	}
	for _, want := range []string{"memdiag: LICENSE", "memdiag: report/assets/uplot/LICENSE", "memdiag: engine/data/digits/LICENSE"} {
		if sections[want] == "" {
			t.Errorf("NOTICE lacks %s", want)
		}
	}
	if len(terms) < 20 {
		t.Errorf("looked at %d files only", len(terms))
	}
	root, err := os.ReadFile(filepath.Join("..", "..", "NOTICE"))
	if err != nil || !bytes.Equal(root, text) {
		t.Errorf("the NOTICE of the repository is no link to this: %v", err)
	}
}

func TestNoticeIsPrinted(t *testing.T) {
	var out, said bytes.Buffer
	if code := run([]string{"licenses"}, nil, &out, &said); code != exitFine || out.String() != notice || !strings.Contains(notice, "Apache License") {
		t.Errorf("exit code %d, %d bytes, %s", code, out.Len(), &said)
	}
}
