package baseline

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// program is what a run ran, as far as its command tells.
type program struct {
	workload string // of memdiag's own
	binary   string // without its folder
	script   string // the first of the command's words that names one, likewise; "" for none
	module   string // of python -m; "" for none
}

// sources end the names of scripts.
var sources = []string{".py", ".pyw", ".pyc", ".sh", ".bash", ".ipynb", ".rb", ".js", ".ts", ".pl", ".lua", ".jl", ".R", ".php"}

func programOf(info *snapshot.Info) program {
	p := program{workload: info.Workload}
	flags := true // none but the binary's so far
	for i, word := range info.Command {
		if i > 0 && python.MatchString(p.binary) && !strings.HasPrefix(word, "-") && !slices.Contains([]string{"-W", "-X"}, info.Command[i-1]) {
			flags = false // they are the script's from here on
		}
		runsModules := flags && p.script == "" && p.module == "" && (python.MatchString(p.binary) || p.binary == "torchrun")
		module := moduleFlag.FindStringSubmatch(word)
		name, _, _ := strings.Cut(word, "::") // of pytest: test_train.py::test_step
		base := path.Base(filepath.ToSlash(name))
		switch {
		case i == 0:
			p.binary = base
		case runsModules && codeFlag.MatchString(word):
			return p // what follows is its text, and then arguments
		case runsModules && module != nil:
			p.module = module[1]
			if p.module == "" && i+1 < len(info.Command) {
				p.module = info.Command[i+1]
			}
		}
		if p.script == "" && slices.Contains(sources, path.Ext(base)) && !strings.Contains(base, " ") {
			p.script = base
		}
	}
	return p
}

var (
	// python is an interpreter of any version.
	python = regexp.MustCompile(`^(python|pypy|pythonw)[0-9.]*(\.exe)?$`)
	// moduleFlag is Python's -m, and codeFlag its -c, alone or after flags without values; what follows may be attached.
	moduleFlag = regexp.MustCompile(`^(?:-[bBdEhiIOPqsSuvVx]*m|--module=?)(.*)$`)
	codeFlag   = regexp.MustCompile(`^-[bBdEhiIOPqsSuvVx]*c`)
)

func (p program) String() string {
	switch {
	case p.workload != "":
		return "workload " + p.workload
	case p.script != "":
		return p.script
	case p.module != "":
		return p.module
	}
	return p.binary
}

// other says how the run after is of another program than the one before; "" where it is of
// the same, or their commands do not tell.
func other(before, after *snapshot.Info) string {
	a, b := programOf(before), programOf(after)
	if a == (program{}) || b == (program{}) {
		return ""
	}
	modules := a.module != "" && b.module != "" && a.module != b.module
	if a.workload == b.workload && !modules && a.stem() == b.stem() {
		return ""
	}
	return fmt.Sprintf("it is another program: %s, not %s", b, a)
}

// stem is what a script, a module or a binary are all called by: a module may be run by its
// file, python -m pkg.train as python pkg/train.py.
func (p program) stem() string {
	switch {
	case p.script != "":
		return strings.TrimSuffix(p.script, path.Ext(p.script))
	case p.module != "":
		return p.module[strings.LastIndexByte(p.module, '.')+1:]
	case python.MatchString(p.binary):
		return "python"
	}
	return p.binary
}

// sameWork reports whether two runs of one program were given the same arguments, and the one
// after came to its end: it did all that it does with them.
func sameWork(before, after *snapshot.Info) bool {
	return after.ExitCode != nil && *after.ExitCode == 0 && after.Finished != nil && (before.Workload != "" || len(before.Command) > 0) &&
		sameArguments(before, after, func(words []string) []string { return words })
}

// alikeArguments reports whether two runs were given the same arguments but for flags with a
// number, such as how many steps to take. It is true where the arguments of one are not known.
func alikeArguments(before, after *snapshot.Info) bool {
	return before.Workload == "" && (len(before.Command) == 0 || len(after.Command) == 0) || sameArguments(before, after, withoutNumbers)
}

// withoutNumbers are the words of a command that are no number, nor a flag that has one. Zero counts as a word: it switches
// work off.
func withoutNumbers(words []string) []string {
	var out []string
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		switch {
		case isNumber(word):
			if last := len(out) - 1; last >= 0 && strings.HasPrefix(out[last], "-") {
				out = out[:last]
			}
		case !found || !strings.HasPrefix(name, "-") || !isNumber(value):
			out = append(out, word)
		}
	}
	return out
}

func isNumber(word string) bool {
	return number.MatchString(word) && strings.ContainsAny(word, "123456789")
}

var number = regexp.MustCompile(`^[0-9][0-9._]*(e[-+]?[0-9]+)?$`)

// sameArguments compares the arguments that read leaves, wherever the program's files lay.
func sameArguments(before, after *snapshot.Info, read func([]string) []string) bool {
	if before.Workload != "" {
		given := func(of map[string]string) map[string]string {
			of = maps.Clone(of)
			delete(of, "fixed")
			return of
		}
		return before.Workload == after.Workload && before.Seed == after.Seed && maps.Equal(given(before.Parameters), given(after.Parameters))
	}
	return slices.EqualFunc(read(before.Command), read(after.Command), func(a, b string) bool {
		baseA, baseB := path.Base(filepath.ToSlash(a)), path.Base(filepath.ToSlash(b))
		return baseA == baseB || python.MatchString(baseA) && python.MatchString(baseB)
	})
}

// Related says how the run after is of another program than the one before, "" where nothing tells that, and whether both
// were given the same arguments but for numbers.
func Related(before, after *snapshot.Info) (differs string, alike bool) {
	return other(before, after), alikeArguments(before, after)
}
