package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// commandName is the usual name of a command: the script or the module that it runs, else the program. It is valid as a folder name.
func commandName(args []string) string {
	if name := moduleName(args); name != "" {
		return name
	}
	name := args[0]
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasSuffix(a, ".py") }); i > 0 {
		name = args[i]
	}
	name = filepath.Base(name)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

var (
	// runsModules matches programs that accept python's -m.
	runsModules = regexp.MustCompile(`^(python[0-9.]*|torchrun|accelerate|deepspeed)(\.exe)?$`)
	// moduleFlag matches -m, alone or after flags without values, or with the module at its end.
	moduleFlag = regexp.MustCompile(`^(?:-[bBdEhiIOPqsSuvVx]*m|--module=?)(.*)$`)
	codeFlag   = regexp.MustCompile(`^-[bBdEhiIOPqsSuvVx]*c(.*)$`)
	dotted     = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	// launchers are modules that run another module or a script.
	launchers = []string{"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}
)

// moduleName is the module that a command runs. For python -m it is the named module; for python -c, the first that the code imports
// from this folder, else the first outside the standard library. It is "" if a script comes first, or there is no module.
func moduleName(args []string) string {
	program := slices.IndexFunc(args, func(a string) bool { return runsModules.MatchString(filepath.Base(a)) })
	if program < 0 {
		return ""
	}
	value := func(i int, attached string) string {
		if attached == "" && i+1 < len(args) {
			return args[i+1]
		}
		return attached
	}
	for i := program + 1; i < len(args); i++ {
		if strings.HasSuffix(args[i], ".py") {
			return ""
		}
		if m := moduleFlag.FindStringSubmatch(args[i]); m != nil {
			if name := value(i, m[1]); dotted.MatchString(name) && !slices.Contains(launchers, name) {
				return name
			}
		}
		if m := codeFlag.FindStringSubmatch(args[i]); m != nil {
			return importedName(value(i, m[1]))
		}
	}
	return ""
}

// importedName is the first module that code imports from this folder, else the first outside the standard library.
func importedName(code string) string {
	var modules []string
	for _, statement := range strings.FieldsFunc(code, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(statement)
		switch {
		case len(words) < 2:
		case words[0] == "from":
			modules = append(modules, words[1])
		case words[0] == "import":
			for module := range strings.SplitSeq(strings.Join(words[1:], " "), ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(module), " ") // without "as NAME"
				modules = append(modules, name)
			}
		}
	}
	modules = slices.DeleteFunc(modules, func(name string) bool { return !dotted.MatchString(name) })
	for _, name := range modules {
		path := strings.ReplaceAll(name, ".", string(filepath.Separator))
		for _, at := range []string{path, path + ".py"} {
			if _, err := os.Stat(at); err == nil {
				return name
			}
		}
	}
	foreign := func(name string) bool {
		top, _, _ := strings.Cut(name, ".")
		return !slices.Contains(standardModules, top)
	}
	if i := slices.IndexFunc(modules, foreign); i >= 0 {
		return modules[i]
	}
	return ""
}
