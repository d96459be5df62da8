package report

import (
	"strings"

	"github.com/memdiag/memdiag/diff"
)

// NotSeen says in one line which part of a run no verdict covers; "" for nothing.
func NotSeen(r *diff.Result) string { return notSeenText(r.NotSeen) }

func notSeenText(clauses []string) string {
	if len(clauses) == 0 {
		return ""
	}
	parts := make([]string, len(clauses))
	for i, c := range clauses {
		parts[i] = brief(c)
	}
	return "not seen: " + strings.Join(parts, "; ")
}
