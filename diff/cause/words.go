package cause

import (
	"path"
	"strings"
	"unicode"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// wordsOf splits names into lower-case words: "modelCache.byKey[].value" gives model, cache, by, key, value.
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
			// A word begins at a capital after a small letter, and at the last of several capitals: "EMACopy" gives
			// ema, copy.
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

// holderWords returns the words of a holder's path that show its purpose: the container's name, the name of the
// object whose field it is, and the path within its elements. Earlier parts only lead to it: in
// "Report.metrics.items" Report says nothing about the items. In "model._forward_hooks[2] closure seen" one hook
// fills a list; the number of hooks need not grow.
func holderWords(path string) []string {
	if at := strings.LastIndex(path, closure); at >= 0 && !strings.Contains(path[:at], "[…]") {
		path = path[at+len(closure):]
	}
	container, element, _ := strings.Cut(path, "[")
	parts := strings.Split(container, ".")
	return append(wordsOf(strings.Join(parts[max(0, len(parts)-2):], ".")), wordsOf(element)...)
}

// closure separates a function in a path from a variable in its closure.
const closure = " closure "

// names reports whether words contain one of the terms. A term is one or more consecutive words, in any common form,
// or joined into one word.
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

// isWord reports whether w is the term or a common form of it: plural, past, -ing, -er.
func isWord(w, term string) bool {
	rest, ok := strings.CutPrefix(w, term)
	if !ok {
		// "cache" becomes caching, "copy" becomes copies.
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

// fileWords returns the words of a file's name and, for a library, of its folders: "torchmetrics/text/bleu.py" shows
// the purpose, "/home/me/logs/" does not.
func fileWords(f snapshot.Frame, library bool) []string {
	file := frame.Slashed(f.File)
	base := path.Base(file)
	if library {
		folders := strings.Split(path.Dir(file), "/")
		base = strings.Join(folders[max(0, len(folders)-3):], "/") + "/" + base
	}
	return wordsOf(strings.TrimSuffix(base, path.Ext(base)))
}

// functionWords returns the words of a function's name; none for "<listcomp>" and the like.
func functionWords(function string) []string {
	if strings.HasPrefix(function, "<") {
		return nil
	}
	return wordsOf(bareName(function))
}

// bareName is a function's name, for C++ without parameters and template arguments, which name only types.
func bareName(function string) string {
	if strings.Contains(function, "::") {
		return snapshot.WithoutArguments(function)
	}
	return function
}

// ownWords returns the words of a frame's function. For a function that a library created within another, only its
// own name counts: "profile_hook_step.<locals>.wrapper" is PyTorch's wrapper of each optimizer step, and no hook. For
// Go, the package's name counts only in libraries, like folders.
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

// goName is a function without the part before the last element of its package's path: "handler.Get" for Go's
// "github.com/me/metrics-server/handler.Get".
func goName(f snapshot.Frame) string {
	if !frame.IsGo(f) {
		return f.Function
	}
	path, _, _ := strings.Cut(f.Function, "[") // type arguments contain paths, too
	return f.Function[strings.LastIndexByte(path, '/')+1:]
}

// madeIn is Python's separator between a function and one that is defined within it.
const madeIn = ".<locals>."

// place is a short location of a frame: the function without its package, such as "(*Loader).Next", or else the file.
func place(f snapshot.Frame) string {
	switch {
	case f.Function == "":
		return frame.Base(f.File)
	case strings.HasSuffix(f.File, ".py"): // methods keep their class, and "<listcomp>" gives its function
		function, _, _ := strings.Cut(f.Function, madeIn+"<")
		return function
	}
	return shortName(bareName(goName(f)))
}

// installed is the path of an installed package's file, from the package's name on.
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

// lastName is the part after the last dot: "Forward" for "workload.(*Pyramid).Forward".
func lastName(function string) string { return function[strings.LastIndexByte(function, '.')+1:] }
