package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// preferUsersPrograms has commands such as python found among the user's programs first. uvx makes an environment for memdiag alone and
// puts it first on PATH, but its Python has none of the user's libraries. It is moved to the end of PATH.
func (env *environment) preferUsersPrograms() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	bin, path := filepath.Dir(program), filepath.SplitList(env.getenv("PATH"))
	tool := filepath.Dir(bin)
	first := slices.Index(path, bin)
	if first < 0 || !madeForMemdiag(tool) || sameFolder(env.getenv("VIRTUAL_ENV"), tool) {
		return
	}
	path = append(slices.Delete(path, first, first+1), bin)
	if err := os.Setenv("PATH", strings.Join(path, string(os.PathListSeparator))); err == nil {
		env.talk.say("using python and other commands from your PATH, not from memdiag's own environment %s", tool)
	}
}

// madeForMemdiag reports whether a folder is a Python virtual environment in uv's cache, in a folder such as archive-v0, with no package
// but memdiag. A user's environment may have no other package either, not even pip.
func madeForMemdiag(folder string) bool {
	for _, name := range []string{"pyvenv.cfg", filepath.Join("..", "..", "CACHEDIR.TAG")} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	packages, err := filepath.Glob(filepath.Join(escaped(folder), "lib", "python*", "site-packages", "*.dist-info"))
	return err == nil && len(packages) == 1 && strings.HasPrefix(filepath.Base(packages[0]), "memdiag-")
}

// escaped is a pattern that matches only this path.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func sameFolder(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}
