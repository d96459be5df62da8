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

// version returns the module's version, as stamped by the go command, with the Go version and the platform.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
