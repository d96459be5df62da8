package valgrind

import (
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// frameOf reads "0x1091DB: train (leak.c:22)", "0x1091DB: f (in /usr/lib/x.so)",
// "0x1091DB: leak::main (src/main.rs:8:22)" or "in 3 places, all below massif's
// threshold (1.00%)".
func frameOf(text string) snapshot.Frame {
	if strings.HasPrefix(text, "in ") {
		// The number of places differs from snapshot to snapshot.
		return snapshot.Frame{Function: "<places below massif's threshold>", Line: -1}
	}
	if address, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(address, "0x") {
		text = rest
	}
	f := snapshot.Frame{Function: text, Line: -1}
	open := strings.LastIndex(text, " (")
	if open < 0 || !strings.HasSuffix(text, ")") {
		return f
	}
	at := text[open+2 : len(text)-1]
	f.Function = text[:open]
	if path, ok := strings.CutPrefix(at, "in "); ok {
		f.File = path
		return f
	}
	f.File = at
	if file, line, ok := cutNumber(at); ok {
		f.File, f.Line = file, line
		if file, line, ok := cutNumber(file); ok { // what came last was the column
			f.File, f.Line = file, line
		}
	}
	if f.Line == 0 { // "???:0:0" of Rust's dhat
		f.Line = -1
	}
	return f
}

// cutNumber cuts "leak.c:22" at its last colon.
func cutNumber(at string) (before string, n int, ok bool) {
	colon := strings.LastIndexByte(at, ':')
	if colon < 0 {
		return at, 0, false
	}
	v, err := strconv.ParseUint(at[colon+1:], 10, 31)
	return at[:colon], int(v), err == nil
}
