package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/snapshot"
)

// TestLintAsksWhetherAFileHasAnotherText: a file that was checked out anew was said to be changed.
func TestLintAsksWhetherAFileHasAnotherText(t *testing.T) {
	const text = "kept = []\n"
	begun := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		recorded string
		written  time.Time
		want     string
	}{
		"the same text":               {snapshot.Content(text), begun.Add(-time.Hour), ""},
		"the same text, written anew": {snapshot.Content(text), begun.Add(time.Hour), ""},
		"another text":                {snapshot.Content("kept = ()\n"), begun.Add(time.Hour), "was changed since the recording"},
		"another text that is older":  {snapshot.Content("kept = ()\n"), begun.Add(-time.Hour), "was changed since the recording"},
		"no text, and newer":          {"", begun.Add(time.Hour), "is newer than the run"},
		"no text, and older":          {"", begun.Add(-time.Hour), ""},
	} {
		file := source.File{Name: filepath.Join(t.TempDir(), "train.py"), Text: text}
		if err := os.WriteFile(file.Name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file.Name, c.written, c.written); err != nil {
			t.Fatal(err)
		}
		info := snapshot.Info{Started: begun}
		if c.recorded != "" {
			info.Code.Contents = map[string]string{file.Name: c.recorded}
		}
		if got := sinceRecorded(&info, &file); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The agent's test has the same text and figure.
func TestAContentIsWhatTheAgentWrites(t *testing.T) {
	if got := snapshot.Content("def keep():\n    pass\n"); got != "21:4b41b8d8" {
		t.Error(got)
	}
}
