package baseline_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memdiag/memdiag/diff/baseline"
)

// FuzzParse: whatever the file, Parse ends, and tells the place of a fault within the
// text; what it accepts is written as a file that it reads again, to the same bytes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "version: 1\n", "version: 1\nknown: []\n", "version: 7\n",
		"version: 1\nknown:\n  - fingerprint: s1-1\n    where: a.py:1\n    max-growth: 4KiB/step\n    owner: ann\n    issue: \"#12\"\n    reason: |\n      two\n      lines\n    expires: 2027-01-31\n",
		"\ufeffversion: 1\r\nknown:\r\n  - fingerprint: x\r\n    max-growth: 4KiB\r\n",
		"version: 1\nknown:\n  - fingerprint: x\n    expires: soon\n", "version: 1\nversion: 1\n",
		"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "version: 1\nknown: &a\n  - *a\n", "version: 1\nknown: [", "--- \n...\n---\nversion: 1\n",
		"version: 1\nknown:\n- {fingerprint: x, max-growth: -1B/step}\n- {fingerprint: x}\n", "<<: *x\n", "!!binary |\n  x\n", "? x\n: y\n", "version: 0x1\nknown: ~\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := baseline.Parse([]byte(text))
		if err != nil {
			fault, ok := errors.AsType[*baseline.Error](err)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if fault.Line < 0 || fault.Line > strings.Count(text, "\n")+1 || (fault.Line > 0) != (fault.Excerpt() != "") || strings.Contains(fault.Source, "\n") {
				t.Fatalf("%+v in %q", fault, text)
			}
			return
		}
		written, err := file.Bytes()
		if err != nil {
			t.Fatalf("%v of %+v", err, file)
		}
		back, err := baseline.Parse(written)
		if err != nil {
			t.Fatalf("%v in\n%s\nof %q", err, written, text)
		}
		again, err := back.Bytes()
		if err != nil || !bytes.Equal(again, written) && utf8.ValidString(text) {
			t.Fatalf("%v: first\n%s\nthen\n%s", err, written, again)
		}
	})
}
