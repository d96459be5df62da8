package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/snapshot"
)

// TestEachLeakHasAPatchThatAppliesAlone has git apply them, alone and together.
func TestEachLeakHasAPatchThatAppliesAlone(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	far := strings.Repeat("print(1)\n", 8)
	for _, c := range []struct {
		name, text string
		apart      string
	}{
		{"far from each other", "kept, log = [], []\nfor x in data:\n    kept.append(x)\n" + far + "for x in data:\n    log.append(x)\n", ""},
		{"beside each other", "kept, log = [], []\nfor x in data:\n    kept.append(x)\n    log.append(x)\n", "patches 1 and 2 change the same lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "train.py")
			file := source.File{Name: name, Text: c.text}
			leak := func(id int, path string) source.Leak {
				return source.Leak{ID: id, Path: "__main__." + path, Kind: "list", Files: []string{name}, Frames: []source.Frame{}}
			}
			leaks, patch := []source.Leak{leak(0, "kept"), leak(1, "log")}, &Patch{}
			all, err := source.Python(python).Patch(context.Background(), []source.File{file}, leaks)
			if err != nil {
				t.Fatal(err)
			}
			diffOf := func(files []source.File) string { return unifiedDiff(map[string]*source.File{name: &file}, files, dir) }
			patch.Diff = diffOf(all.Files)
			if err := patch.apart(context.Background(), source.Python(python), []source.File{file}, leaks, map[int]string{0: "kept grows", 1: "log grows"}, diffOf); err != nil {
				t.Fatal(err)
			}
			if len(patch.Leaks) != 2 || patch.Leaks[1].Of[0] != "log grows" || !strings.HasPrefix(patch.Apart, c.apart) || (patch.Apart == "") != (c.apart == "") {
				t.Fatalf("%+v", patch)
			}
			row := &PatchRow{Diff: patch.Diff, Apart: patch.Apart}
			for _, l := range patch.Leaks {
				row.Leaks = append(row.Leaks, LeakPatchRow(l))
			}
			var text strings.Builder
			row.text(&text)
			for what, diff := range map[string]string{"the first": patch.Leaks[0].Diff, "the second": patch.Leaks[1].Diff, "all": patch.Diff, "the page": text.String()} {
				if got := applied(t, dir, c.text, diff); !strings.Contains(got, "del ") || what == "the page" && got != all.Files[0].Text {
					t.Errorf("%s: %s", what, got)
				}
			}
		})
	}
}

// applied is a text after git apply.
func applied(t *testing.T, dir, text, diff string) string {
	t.Helper()
	name := filepath.Join(dir, "train.py")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	git := exec.CommandContext(t.Context(), "git", "apply", "-")
	git.Dir, git.Stdin = dir, strings.NewReader(diff)
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, diff)
	}
	now, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(now)
}

// TestALineOfAHunkIsNoHead, whatever it looks like.
func TestALineOfAHunkIsNoHead(t *testing.T) {
	far := "e\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\n"
	name := "/src/train.py"
	was := map[string]*source.File{name: {Name: name, Text: "a\n-- x\n@@ -1 +1 @@\nb\n" + far + "y\n"}}
	diff := unifiedDiff(was, []source.File{{Name: name, Text: "a\nb\n++ y\n" + far + "z\n"}}, "/src")
	got := hunksOf(diff)
	if !strings.Contains(diff, "\n--- x\n") || len(got) != 2 || got[0].file != got[1].file || got[0].first != 1 || got[1].next != 18 {
		t.Errorf("%+v of\n%s", got, diff)
	}
}

// TestAPatchReadsPythonAlone: a run may name any file.
func TestAPatchReadsPythonAlone(t *testing.T) {
	dir := t.TempDir()
	plain := program(t, list, 0, 0, nil)
	own := make(map[string]string)
	for _, name := range []string{"train.py", "secret.txt"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		own[path] = "1"
	}
	plain.Result.Run().Info.Code = snapshot.Code{Files: own}
	found := &Findings{Plain: plain, Leak: leaksOf(plain.Result)[0]}
	texts, _ := found.sources()
	if len(texts) != 1 || texts[filepath.Join(dir, "train.py")] == nil {
		t.Errorf("%v", texts)
	}
}
