package main

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// notice is the licences of all that the binary contains; its test makes it.
//
//go:embed NOTICE
var notice string

func newLicensesCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "licenses",
		GroupID: groupMore,
		Short:   "print the licences of memdiag and of all code in its binary",
		Long: `Prints the licences of memdiag, of the Go modules in its binary, of Go, of the
code in its pages, and of the data that it trains on. Each text is printed once.`,
		Example: `  memdiag licenses`,
		Args:    takes(0, 0, "arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(env.stdout, notice)
			return err
		},
	}
}
