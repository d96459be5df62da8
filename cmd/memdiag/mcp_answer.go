package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/report"
)

// patchHead begins a patch in a text.
const patchHead = "--- a/"

// mostPatch is how many bytes of an answer may be patches; the rest is for the explanation.
const mostPatch = mostAnswer - 2000

// cut shortens a text to below mostAnswer bytes, with last as its last line, and removes what a terminal would obey. Patches are kept
// whole or not at all, since a part of one is useless.
func cut(text, last string) string {
	text, patches := apart(text)
	var kept strings.Builder
	for i, p := range patches {
		if kept.Len()+len(p) > mostPatch {
			fmt.Fprintf(&kept, "(%d more patches are too long for an answer; memdiag doctor --patch prints them)\n", len(patches)-i)
			break
		}
		kept.WriteString(p)
	}
	var b strings.Builder
	left := 0
	for line := range strings.Lines(text) {
		line = printable(line)
		if left > 0 || b.Len()+len(line)+kept.Len()+len(last)+100 > mostAnswer {
			left++
			continue
		}
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "(%d more lines)\n", left)
	}
	return b.String() + kept.String() + report.Printable(last)
}

// apart splits a text into what comes before its patches, and the patches, each with the line that names it.
func apart(text string) (before string, patches []string) {
	lines := slices.Collect(strings.Lines(text))
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, patchHead) })
	if first < 0 {
		return text, nil
	}
	for first > 0 && (strings.TrimSpace(lines[first-1]) == "" || strings.HasPrefix(lines[first-1], "Patch")) {
		first--
	}
	var patch strings.Builder
	for i, line := range lines[first:] {
		if i > 0 && strings.HasPrefix(line, "Patch ") {
			patches = append(patches, patch.String())
			patch.Reset()
		}
		patch.WriteString(printable(line))
	}
	return strings.Join(lines[:first], ""), append(patches, patch.String())
}

// printable makes a line safe to print. It keeps tabs, which a patch needs.
func printable(line string) string {
	parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
	for i := range parts {
		parts[i] = report.Printable(parts[i])
	}
	return strings.Join(parts, "\t") + "\n"
}
