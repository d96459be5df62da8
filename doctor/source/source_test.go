package source

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	unified "github.com/rogpeppe/go-internal/diff"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func python(t *testing.T) Python {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	return Python(path)
}

// patched is the patch of a text, without its head, or why there is none.
func patched(t *testing.T, text string, leak Leak) string {
	t.Helper()
	leak.Files = []string{"train.py"}
	for i := range leak.Frames {
		leak.Frames[i].File = "train.py"
	}
	if leak.Frames == nil {
		leak.Frames = []Frame{}
	}
	p, err := python(t).Patch(context.Background(), []File{{"train.py", text}}, []Leak{leak})
	if err != nil {
		return "error: " + err.Error()
	}
	if why := p.Refused[0]; why != "" {
		return "refused: " + why
	}
	lines := strings.Split(string(unified.Diff("a", []byte(text), "b", []byte(p.Files[0].Text))), "\n")
	var out []string
	for _, l := range lines[3:] {
		if l != "" && (l[0] == '+' || l[0] == '-') {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestAPatchIsTheSmallestChangeThatLetsGo(t *testing.T) {
	for _, c := range []struct {
		name, text string
		leak       Leak
		want       string
	}{
		{
			"a sum of losses goes on without their graph",
			"for x in data:\n    loss = f(x)\n    total += loss\nprint(total)\n", Leak{Path: "__main__.total", Kind: "nodes", Cause: "graph-retained"},
			"-    total += loss\n+    total += loss.detach()",
		},
		{
			"of what is taken backward the graph is needed",
			"for x in data:\n    total += f(x)\ntotal.backward()\n", Leak{Path: "__main__.total", Kind: "nodes", Cause: "graph-retained"},
			"refused: `total` is taken backward: it needs its graph",
		},
		{
			"a mean that moves",
			"for x in data:\n    mean = 0.9 * mean + 0.1 * f(x)\n", Leak{Path: "__main__.mean", Kind: "nodes", Cause: "graph-retained"},
			"-    mean = 0.9 * mean + 0.1 * f(x)\n+    mean = (0.9 * mean + 0.1 * f(x)).detach()",
		},
		{
			"a state that goes from step to step",
			"for x in data:\n    y, h = cell(x, h)\n", Leak{Path: "__main__.h", Kind: "nodes", Cause: "graph-retained", Trial: "detach"},
			"+    h = h.detach()",
		},
		{
			"the default of an argument",
			"def f(x, seen=[]):\n    seen.append(x)\n    return seen[-10:]\n", Leak{Path: "__main__.f default seen", Kind: "list"},
			"+    del seen[:-10]",
		},
		{
			"numbers where all that is read are numbers",
			"kept = []\nfor x in data:\n    kept.append(f(x) + 1)\nprint(kept[0].item(), sum(k.item() for k in kept), len(kept))\n", Leak{Path: "__main__.kept", Kind: "list"},
			"-    kept.append(f(x) + 1)\n-print(kept[0].item(), sum(k.item() for k in kept), len(kept))\n+    kept.append((f(x) + 1).item())\n+print(kept[0], sum(kept), len(kept))",
		},
		{
			"no more than is read",
			"kept = []\nfor x in data:\n    kept.append(x)\n    print(kept[-3:], kept[-1])\n", Leak{Path: "__main__.kept", Kind: "list"},
			"+    del kept[:-3]",
		},
		{
			"of all that is read nothing may go",
			"kept = []\nfor x in data:\n    kept.append(x)\nplot(kept)\n", Leak{Path: "__main__.kept", Kind: "list"},
			"refused: the program reads all of `kept`: which items it can let go, memdiag cannot know",
		},
		{
			"all that is read keeps a graph of nobody's",
			"kept = []\nfor x in data:\n    kept.append(f(x))\nplot(kept)\n", Leak{Path: "__main__.kept", Kind: "list", Cause: "graph-retained"},
			"-    kept.append(f(x))\n+    kept.append(f(x).detach())",
		},
		{
			"a part of a tensor is copied",
			"kept = []\nfor x in data:\n    kept.append(x[0])\nplot(kept)\n", Leak{Path: "__main__.kept", Kind: "list"},
			"-    kept.append(x[0])\n+    kept.append(x[0].clone())",
		},
		{
			"what is read in a turn is made in that turn",
			"kept = []\nfor x in data:\n    kept.append(f(x))\n    loss = sum(kept)\n", Leak{Path: "__main__.kept", Kind: "list"},
			"-kept = []\n+    kept = []",
		},
		{
			"a deque gets a bound",
			"import collections\nkept = collections.deque()\nfor x in data:\n    kept.append(x)\n", Leak{Path: "__main__.kept", Kind: "deque"},
			"-kept = collections.deque()\n+kept = collections.deque(maxlen=1)",
		},
		{
			"a cache gets a bound, and an import where it lacks one",
			"\"\"\"Text.\"\"\"\nfrom __future__ import annotations\nfrom functools import cache\n\n@cache\ndef f(x):\n    return x\n", Leak{Path: "__main__.f", Kind: "cache", Kept: 50},
			"+import functools\n-@cache\n+@functools.lru_cache(maxsize=50)",
		},
		{
			"a dictionary that is a cache",
			"cache = {}\ndef f(x):\n    if x not in cache:\n        cache[x] = g(x)\n    return cache[x]\n", Leak{Path: "__main__.cache", Kind: "dict"},
			"+        if len(cache) > 128:\n+            del cache[next(iter(cache))]",
		},
		{
			"a dictionary of which nobody knows",
			"seen = {}\ndef f(x):\n    seen[x] = g(x)\n", Leak{Path: "__main__.seen", Kind: "dict"},
			"refused: whether the program reads `seen` again is not known",
		},
		{
			"lists by key",
			"kept = {}\ndef hook(m, i, o):\n    kept.setdefault(m.name, []).append(o)\n", Leak{Path: "__main__.kept['a'] and 3 more like it", Kind: "list"},
			"+    del kept[m.name][:-1]",
		},
		{
			"a hook is removed where its block ends",
			"for x in data:\n    layer.register_forward_hook(watch)\n    f(x)\n", Leak{Path: "m.layer._forward_hooks", Kind: "dict", Cause: "hook-not-removed"},
			"-    layer.register_forward_hook(watch)\n+    handle = layer.register_forward_hook(watch)\n+    handle.remove()",
		},
		{
			"a chain is cut",
			"class A:\n    def step(self):\n        self.state = State(self.state)\n", Leak{Path: "A.state.previous…", Kind: "chain"},
			"+        self.state.previous = None",
		},
		{
			"a set",
			"seen = set()\nfor x in data:\n    seen.add(x)\n", Leak{Path: "__main__.seen", Kind: "set"},
			"refused: a set does not know its oldest items",
		},
		{
			"two statements of a line",
			"kept = []\nfor x in data: kept.append(x); f(x)\n", Leak{Path: "__main__.kept", Kind: "list"},
			"-for x in data: kept.append(x); f(x)\n+for x in data: kept.append(x); del kept[:-1]; f(x)",
		},
		{
			"a condition on its line",
			"kept = []\nfor x in data:\n    if x: kept.append(x)  # é\n", Leak{Path: "__main__.kept", Kind: "list"},
			"-    if x: kept.append(x)  # é\n+    if x: kept.append(x); del kept[:-1]  # é",
		},
		{
			"a hook whose block ends with several statements of a line",
			"for x in data:\n    layer.register_forward_hook(watch)\n    f(x); g(x)\n", Leak{Path: "m.layer._forward_hooks", Kind: "dict", Cause: "hook-not-removed"},
			"-    layer.register_forward_hook(watch)\n-    f(x); g(x)\n+    handle = layer.register_forward_hook(watch)\n+    f(x); g(x); handle.remove()",
		},
		{
			"the number of items is compared",
			"kept = []\nfor x in data:\n    kept.append(x)\n    if len(kept) > 3:\n        f(kept[-1])\n", Leak{Path: "__main__.kept", Kind: "list"},
			"+    del kept[:-4]",
		},
		{
			"each tenth item does something",
			"kept = []\nfor x in data:\n    kept.append(x)\n    if len(kept) % 10 == 0:\n        f(kept[-1])\n", Leak{Path: "__main__.kept", Kind: "list"},
			"refused: line 4 decides by the number of items",
		},
		{
			"each tenth item does something, by a name for the number",
			"kept = []\nfor x in data:\n    kept.append(x)\n    n = len(kept)\n    if n % 10 == 0:\n        f(kept[-3:])\n", Leak{Path: "__main__.kept", Kind: "list"},
			"refused: line 4 decides by the number of items",
		},
		{
			"each tenth item does something, by a name for what is left",
			"kept = []\nfor x in data:\n    kept.append(x)\n    if (left := len(kept) % 10) == 0:\n        f(kept[-3:])\n", Leak{Path: "__main__.kept", Kind: "list"},
			"refused: line 4 decides by the number of items",
		},
		{
			"the number of items has a name that no condition reads",
			"kept = []\ndef f(x):\n    kept.append(x)\n    n = len(kept)\n    print(n)\ndef g(n):\n    if n:\n        h()\n", Leak{Path: "__main__.kept", Kind: "list"},
			"+    del kept[:-1]",
		},
		{
			"the number of items is printed",
			"kept = []\nfor x in data:\n    kept.append(x)\nprint(len(kept) + 1, len(kept) == 3)\n", Leak{Path: "__main__.kept", Kind: "list"},
			"+    del kept[:-1]",
		},
		{
			"an entry that has a name, too",
			"seen = {}\ndef f(x):\n    if x not in seen:\n        y = seen[x] = g(x)\n    return seen[x]\n", Leak{Path: "__main__.seen", Kind: "dict"},
			"+        if len(seen) > 128:\n+            del seen[next(iter(seen))]",
		},
		{
			"several lines do not fit into one",
			"seen = {}\nfor x in data:\n    if x not in seen: seen[x] = g(x)\n", Leak{Path: "__main__.seen", Kind: "dict"},
			"refused: line 3 has more than one statement",
		},
		{
			"what is used needs all of it",
			"kept = []\nfor x in data:\n    kept.append(x)\n", Leak{Path: "__main__.kept", Kind: "list", Needed: true},
			"refused: the program uses what `kept` holds",
		},
		{"no name", "x = 1\n", Leak{Path: "(no name leads to it)", Kind: "list"}, "refused: what holds it has no name in the source"},
		{"not of this file", "x = 1\n", Leak{Path: "__main__.kept", Kind: "list"}, "refused: nothing in this file adds to `kept`"},
		{"not Python", "print 1\n", Leak{Path: "__main__.kept", Kind: "list"}, "refused: Missing parentheses in call to 'print'. Did you mean print(...)? (<unknown>, line 1)"},
		{"windows lines and characters", "kept = []\r\nfor x in data:\r\n    kept.append('é' + x)  # é\r\n", Leak{Path: "__main__.kept", Kind: "list"}, "+    del kept[:-1]\r"},
		{"no last line end", "kept = []\nfor x in data:\n    kept.append(x)", Leak{Path: "__main__.kept", Kind: "list"}, "-    kept.append(x)\n+    kept.append(x)\n+    del kept[:-1]"},
	} {
		if got := patched(t, c.text, c.leak); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestSuspectsOfTheScripts(t *testing.T) {
	names, err := filepath.Glob("../../testdata/scripts/leak_*.py")
	if err != nil || len(names) < 20 {
		t.Fatal(names, err)
	}
	var files []File
	for _, name := range names {
		f, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Name = filepath.Base(name)
		files = append(files, *f)
	}
	linted, err := python(t).Lint(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range linted {
		for _, s := range l.Found {
			b.WriteString(strings.Join([]string{l.Name, s.Cause, s.Says}, " ") + "\n")
		}
		if l.Failed != "" || len(l.Found) == 0 && l.Name != "leak_chain.py" {
			t.Errorf("%s: %q, and no suspect", l.Name, l.Failed)
		}
	}
	const golden = "testdata/suspects.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v\n%s", err, &b)
	}
}

func TestHostileSourceIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"deep":   strings.Repeat("(", 100_000),
		"null":   "x = '\x00'",
		"nested": strings.Repeat("-", 200_000) + "1",
		"empty":  "",
	} {
		linted, err := python(t).Lint(context.Background(), []File{{name, text}})
		if err == nil && linted[0].Failed == "" && name != "empty" {
			t.Errorf("%s: %+v", name, linted)
		}
	}
	dir := t.TempDir()
	big := filepath.Join(dir, "big.py")
	if err := os.WriteFile(big, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{big, dir, "/dev/zero", filepath.Join(dir, "none.py")} {
		if _, err := Read(name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestAnOverlayHasTheOtherFilesAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := write("train.py", "import nets.net, other; print(nets.net.x, other.y, open(__file__[:-8] + 'data.txt').read())\n")
	net := write("nets/net.py", "x = 1\n")
	write("nets/__init__.py", "")
	write("other.py", "y = 2\n")
	write("data.txt", "3")
	args, remove, err := Overlay([]string{string(python(t)), script}, []File{{net, "x = 10\n"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput() //nolint:gosec // made here
	if err != nil || string(out) != "10 2 3\n" {
		t.Errorf("%v: %s", err, out)
	}
	remove()
	if text, err := os.ReadFile(net); err != nil || string(text) != "x = 1\n" {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(args[1]); err == nil {
		t.Error("the copy is still there")
	}
	for _, c := range [][]string{{"python3", "-m", "train"}, {"python3", script}} {
		if _, _, err := Overlay(c, []File{{"/etc/hostname", ""}}); err == nil {
			t.Errorf("%v", c)
		}
	}
}

func TestADictThatALoopOfAScriptFillsIsASuspect(t *testing.T) {
	const says = "`cache` gets entries, and no line of this file takes any out"
	for text, want := range map[string]string{
		"cache = {}\nfor step in range(9):\n    cache[step] = net(x)\n":                             says,
		"cache = {}\nfor step in range(9):\n    cache[step] = net(x)\n    cache.pop(step - 3, 0)\n": "",
		"cache = {}\ncache[name] = net(x)\n":                                                        "",
		"for step in range(9):\n    cache = {}\n    cache[step] = net(x)\n":                         "",
	} {
		linted, err := python(t).Lint(context.Background(), []File{{"train.py", text}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range linted[0].Found {
			got += s.Says
		}
		if got != want {
			t.Errorf("%q\n%s\nwant %s", got, text, want)
		}
	}
}
