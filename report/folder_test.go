package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestPathsAreShownFromTheFolderThatOneWorksIn(t *testing.T) {
	here := Folder{"/home/me/proj", "/mnt/real/proj/"}
	for _, c := range []struct{ name, file, want string }{
		{"a file below it", "/home/me/proj/models/fpn.py", "models/fpn.py"},
		{"one by the other path to it", "/mnt/real/proj/train.py", "train.py"},
		{"one beside it", "/home/me/project/train.py", "/home/me/project/train.py"},
		{"an installed package", "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", "site-packages/torch/nn/functional.py"},
		{"one in a folder of the project", "/home/me/proj/.venv/lib/python3.11/site-packages/torch/nn/functional.py", "site-packages/torch/nn/functional.py"},
		{"a distribution's package", "/usr/lib/python3/dist-packages/numpy/core.py", "dist-packages/numpy/core.py"},
		{"Python's own", "/usr/lib/python3.11/json/decoder.py", "/usr/lib/python3.11/json/decoder.py"},
		{"no file", "??", "??"},
		{"a folder of the user's that is called as one of memdiag's", "/home/me/proj/engine/trainer.py", "engine/trainer.py"},
		{"Windows", `C:\venv\Lib\site-packages\torch\x.py`, `site-packages\torch\x.py`},
	} {
		if got := here.file(snapshot.Frame{File: c.file, Function: "f", Line: 1}); got != c.want {
			t.Errorf("%s: %s is shown as %s, want %s", c.name, c.file, got, c.want)
		}
	}
	if got := (Folder{`C:\Users\me\proj`}).file(snapshot.Frame{File: `C:\Users\me\proj\sub\a.py`}); got != "sub/a.py" {
		t.Errorf("on Windows: %s", got)
	}
	if got := (Folder{"/usr/lib"}).file(snapshot.Frame{File: "/usr/lib/python3.11/json/decoder.py", Line: 1}); got != "/usr/lib/python3.11/json/decoder.py" {
		t.Errorf("a library's line became the user's: %s", got)
	}
	if got := (Folder{"/", ""}).file(snapshot.Frame{File: "/train.py"}); got != "/train.py" {
		t.Errorf("below the root of all files: %s", got)
	}
}

// The verdict, the headline and the hash are of the paths that were recorded.
func TestShownPathsChangeNoVerdict(t *testing.T) {
	place := func(folder Folder) (string, string) {
		run := pair([]snapshot.Frame{
			{Function: "relu", File: "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", Line: 7},
			{Function: "step", File: "/home/me/proj/engine/train.py", Line: 9},
		})
		result := analyzed(t, run)
		folder.Results(result)
		return string(rendered(t, func(b *bytes.Buffer) error { return Text(b, result, TextOptions{}) })), hashText(result.Findings[0].Rows[0].Hash)
	}
	whole, hash := place(nil)
	short, same := place(Folder{"/home/me/proj"})
	if hash != same || !strings.Contains(whole, "/home/me/proj/engine/train.py:9 in step   <- allocated here") || !strings.Contains(short, "-> engine/train.py:9 in step   <- allocated here") {
		t.Errorf("%s and\n%s", whole, short)
	}
	if strings.Contains(short, "/home/me") || strings.Contains(short, "/opt/venv") || !strings.Contains(short, "site-packages/torch/nn/functional.py:7 in relu") {
		t.Error(short)
	}
	if strings.Count(whole, "\n") != strings.Count(short, "\n") {
		t.Errorf("%s and\n%s", whole, short)
	}
}
