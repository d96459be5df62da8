package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/record"
)

const cacheHint = "set XDG_CACHE_HOME to choose another folder for the package"

func newPythonPathCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "python-path",
		Short:   "print the folder of memdiag's Python package and pytest plugin",
		GroupID: groupMore,
		Long: `Prints a folder for PYTHONPATH, in which "from memdiag import mark" and "pytest -p
memdiag.pytest" find memdiag's Python package. It lies in the user's cache, and is
created if it is missing. Each version of the package has its own folder; old ones
that no process uses are removed.`,
		Example: `  PYTHONPATH="$(memdiag python-path)" pytest -p memdiag.pytest`,
		Args:    takes(0, 0, "arguments"),
		RunE: func(*cobra.Command, []string) error {
			cache, err := os.UserCacheDir()
			if err != nil {
				return withHint(err, cacheHint)
			}
			dir, err := record.Package(filepath.Join(cache, "memdiag"))
			if err != nil {
				return &exitError{exitOwn, withHint(err, cacheHint)}
			}
			fmt.Fprintln(env.stdout, dir)
			return nil
		},
	}
}
