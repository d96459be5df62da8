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

// program is what a run's command shows that it ran.
type program struct {
	workload string // a workload of memdiag
	binary   string // without its folder
	script   string // the first script among the command's words, without its folder; "" for none
	module   string // from python -m; "" for none
}

// sources are the extensions of scripts.
var sources = []string{".py", ".pyw", ".pyc", ".sh", ".bash", ".ipynb", ".rb", ".js", ".ts", ".pl", ".lua", ".jl", ".R", ".php"}

func programOf(info *snapshot.Info) program {
	p := program{workload: info.Workload}
	flags := true // only flags of the binary so far
	for i, word := range info.Command {
		if i > 0 && python.MatchString(p.binary) && !strings.HasPrefix(word, "-") && !slices.Contains([]string{"-W", "-X"}, info.Command[i-1]) {
			flags = false // later flags are the script's
		}
		runsModules := flags && p.script == "" && p.module == "" && (python.MatchString(p.binary) || p.binary == "torchrun")
		module := moduleFlag.FindStringSubmatch(word)
		name, _, _ := strings.Cut(word, "::") // pytest's test_train.py::test_step
		base := path.Base(filepath.ToSlash(name))
		switch {
		case i == 0:
			p.binary = base
		case runsModules && codeFlag.MatchString(word):
			return p // the program's text and its arguments follow
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
	// python matches an interpreter of any version.
	python = regexp.MustCompile(`^(python|pypy|pythonw)[0-9.]*(\.exe)?$`)
	// moduleFlag matches Python's -m, and codeFlag its -c, alone or after flags without values; the value may be
	// attached.
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

// other says that the later run is of another program than the earlier; "" if it is the same, or if commands do not
// show it.
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

// stem is the common name of a script, a module or a binary: python -m pkg.train and python pkg/train.py run the same
// module.
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

// sameWork reports whether two runs of one program had the same arguments, and the later one ended successfully: it
// did all its work.
func sameWork(before, after *snapshot.Info) bool {
	return after.ExitCode != nil && *after.ExitCode == 0 && after.Finished != nil && (before.Workload != "" || len(before.Command) > 0) &&
		sameArguments(before, after, func(words []string) []string { return words })
}

// alikeArguments reports whether two runs had the same arguments, apart from flags with a number, such as the number
// of steps. It is true if the arguments of one are unknown.
func alikeArguments(before, after *snapshot.Info) bool {
	return before.Workload == "" && (len(before.Command) == 0 || len(after.Command) == 0) || sameArguments(before, after, withoutNumbers)
}

// withoutNumbers returns the words of a command without numbers, and without flags that have a number. Zero counts as
// a word, since it switches work off.
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

// sameArguments compares the arguments that read returns, wherever the program's files are.
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

// Related says that the later run is of another program than the earlier, "" if nothing shows that, and whether both
// had the same arguments apart from numbers.
func Related(before, after *snapshot.Info) (differs string, alike bool) {
	return other(before, after), alikeArguments(before, after)
}
