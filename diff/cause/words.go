package cause

import (
	"path"
	"strings"
	"unicode"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// wordsOf splits names into words of lower case: "modelCache.byKey[].value" is
// model, cache, by, key, value.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r):
			// A word begins at the capital behind a small letter, and at the last
			// capital of a row: "EMACopy" is ema, copy.
			small := i > 0 && !unicode.IsUpper(runes[i-1])
			last := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if small || last {
				end()
			}
		}
		word = append(word, unicode.ToLower(r))
	}
	end()
	return words
}

// holderWords are those of a holder's path that say what it is for: the container's own
// name, whose field it is, and what is behind it in its elements. What stands further in
// front is the way to it: of "Report.metrics.items" Report says nothing of the items, and of
// "model._forward_hooks[2] closure seen" that one hook fills a list does not say that there are ever more.
func holderWords(path string) []string {
	if at := strings.LastIndex(path, closure); at >= 0 && !strings.Contains(path[:at], "[…]") {
		path = path[at+len(closure):]
	}
	container, element, _ := strings.Cut(path, "[")
	parts := strings.Split(container, ".")
	return append(wordsOf(strings.Join(parts[max(0, len(parts)-2):], ".")), wordsOf(element)...)
}

// closure is what stands in a path between a function and a variable that it has closed over.
const closure = " closure "

// names reports whether words hold one of the terms, each of one or more words in
// a row, in any common form, or written as one.
func names(words, terms []string) bool {
	for _, term := range terms {
		parts := strings.Fields(term)
		whole := strings.Join(parts, "")
		for i, w := range words {
			if isWord(w, whole) || i+len(parts) <= len(words) && inRow(words[i:], parts) {
				return true
			}
		}
	}
	return false
}

func inRow(words, parts []string) bool {
	for i, p := range parts[:len(parts)-1] {
		if words[i] != p {
			return false
		}
	}
	return isWord(words[len(parts)-1], parts[len(parts)-1])
}

// isWord reports whether w is the term or a common form of it: plural, past,
// -ing, -er.
func isWord(w, term string) bool {
	rest, ok := strings.CutPrefix(w, term)
	if !ok {
		// "cache" makes caching, "copy" copies.
		stem := term[:max(0, len(term)-1)]
		return len(stem) >= 3 && (strings.HasSuffix(term, "e") && w == stem+"ing" || strings.HasSuffix(term, "y") && (w == stem+"ies" || w == stem+"ied"))
	}
	switch rest {
	case "", "s", "es":
		return true
	case "d", "ed", "r", "er", "ing":
		return len(term) >= 3
	}
	return false
}

// fileWords are those of a file's name, and of its folders where it is a
// library's: "torchmetrics/text/bleu.py" says what is going on, "/home/me/logs/" does
// not.
func fileWords(f snapshot.Frame, library bool) []string {
	file := frame.Slashed(f.File)
	base := path.Base(file)
	if library {
		folders := strings.Split(path.Dir(file), "/")
		base = strings.Join(folders[max(0, len(folders)-3):], "/") + "/" + base
	}
	return wordsOf(strings.TrimSuffix(base, path.Ext(base)))
}

// functionWords are those of a function's name; "<listcomp>" and the like tell nothing.
func functionWords(function string) []string {
	if strings.HasPrefix(function, "<") {
		return nil
	}
	return wordsOf(bareName(function))
}

// bareName is a function's name, of C++ without parameters and template arguments, which
// name whatever passes through.
func bareName(function string) string {
	if strings.Contains(function, "::") {
		return snapshot.WithoutArguments(function)
	}
	return function
}

// ownWords are those of a frame's function. Of one that a library made within another,
// only its own name counts: "profile_hook_step.<locals>.wrapper" is PyTorch's way round
// each step of each optimizer, and no hook. Of Go's the package counts in libraries alone,
// as folders do.
func ownWords(f snapshot.Frame, library bool) []string {
	function := goName(f)
	if i := strings.LastIndex(function, madeIn); library && i >= 0 {
		function = function[i+len(madeIn):]
	}
	if frame.IsGo(f) && !library {
		function = shortName(function)
	}
	return functionWords(function)
}

// goName is a function without what stands before the last element of its package's path:
// "github.com/me/metrics-server/handler.Get" of Go is "handler.Get".
func goName(f snapshot.Frame) string {
	if !frame.IsGo(f) {
		return f.Function
	}
	path, _, _ := strings.Cut(f.Function, "[") // type arguments have paths of their own
	return f.Function[strings.LastIndexByte(path, '/')+1:]
}

// madeIn is what Python writes between a function and the one that it was made in.
const madeIn = ".<locals>."

// place is where a frame is, in short: the function without its package, as in
// "(*Loader).Next", or else the file.
func place(f snapshot.Frame) string {
	switch {
	case f.Function == "":
		return frame.Base(f.File)
	case strings.HasSuffix(f.File, ".py"): // a method has its class, and "<listcomp>" is its function's
		function, _, _ := strings.Cut(f.Function, madeIn+"<")
		return function
	}
	return shortName(bareName(goName(f)))
}

// installed is the file of an installed package, from the package's name on.
func installed(f snapshot.Frame) string {
	if _, file, ok := strings.Cut(frame.Slashed(f.File), "-packages/"); ok {
		return file
	}
	return frame.Base(f.File)
}

func shortName(function string) string {
	if i := strings.IndexByte(function, '.'); i >= 0 && i+1 < len(function) && !strings.Contains(function, "::") {
		return function[i+1:]
	}
	return function
}

// lastName is what stands after the last dot: "workload.(*Pyramid).Forward" is
// "Forward".
func lastName(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }
