package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		GroupID: groupMore,
		Args:    takes(0, 0, "arguments"),
		RunE: func(_ *cobra.Command, _ []string) error {
			fmt.Fprintf(env.stdout, "memdiag %s\n", version())
			return nil
		},
	}
}

// version tells the module's version, as the go command stamped it, and what it
// was built with and for.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
