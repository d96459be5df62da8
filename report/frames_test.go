package report

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestACallAndItsComprehensionAreOneLine(t *testing.T) {
	word := snapshot.Frame{Function: "Tokenizer.word", File: "train.py", Line: 15}
	main := snapshot.Frame{Function: "<module>", File: "train.py", Line: 38}
	for _, c := range []struct {
		name string
		all  bool
		want int
	}{{"in short", false, 2}, {"in full", true, 4}} {
		t.Run(c.name, func(t *testing.T) {
			lines := stackLines([]snapshot.Frame{word, word, main, main}, 0, c.all)
			if len(lines) != c.want || !lines[len(lines)-1].headline {
				t.Errorf("%+v; want %d lines, the last the head", lines, c.want)
			}
		})
	}
}
