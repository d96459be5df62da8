package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManCommand(env *environment) *cobra.Command {
	out := "man1"
	cmd := &cobra.Command{
		Use:     "man",
		GroupID: groupMore,
		Short:   "write a manual page for each command",
		Long: `Writes a manual page for memdiag and for each of its commands into a folder, as
man reads them. The pages hold what --help says.`,
		Example: `  memdiag man -o ~/.local/share/man/man1
  man ./man1/memdiag-diff.1`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(out, 0o777); err != nil {
				return &exitError{exitOwn, err}
			}
			written := 0
			var each func(*cobra.Command) error
			each = func(c *cobra.Command) error {
				if c.Hidden || c.Name() == "help" {
					return nil
				}
				c.InitDefaultHelpFlag()
				path := filepath.Join(out, manName(c)+".1")
				if err := env.result(path, false, func(w io.Writer) error { return manPage(w, c) }); err != nil {
					return err
				}
				written++
				for _, below := range c.Commands() {
					if err := each(below); err != nil {
						return err
					}
				}
				return nil
			}
			if err := each(cmd.Root()); err != nil {
				return err
			}
			env.talk.say("wrote %d pages to %s", written, out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", out, "`DIR` to write into")
	return cmd
}

// manName is "memdiag-diff" for memdiag diff.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes a command's help in the macros of man(7).
func manPage(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH "%s" "1" "" "memdiag" "memdiag manual"`, strings.ToUpper(manName(c)))
	line(".SH NAME\n%s \\- %s", roff(manName(c)), roff(c.Short))
	line(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	line(".SH DESCRIPTION\n%s", roff(c.Long))
	if subcommands := c.Commands(); len(subcommands) > 0 {
		line(".SH COMMANDS")
		for _, s := range subcommands {
			if s.IsAvailableCommand() {
				line(".TP\n.B %s\n%s", roff(s.Name()), roff(s.Short))
			}
		}
	}
	line(".SH OPTIONS")
	for _, flags := range []*pflag.FlagSet{c.NonInheritedFlags(), c.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			text := "--" + f.Name
			if f.Shorthand != "" {
				text = "-" + f.Shorthand + ", " + text
			}
			if name != "" {
				text += " " + name
			}
			switch f.DefValue {
			case "", "0", "0s", "false", "[]": // like --help, show no zero values
			default:
				usage += " (default " + f.DefValue + ")"
			}
			line(".TP\n.B %s\n%s", roff(text), roff(usage))
		})
	}
	if c.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(c.Example))
	}
	line(".SH EXIT STATUS\n%s", roff("memdiag help exit-codes lists the codes, which are the same for all commands."))
	if c.HasParent() {
		line(".SH SEE ALSO\n.BR %s (1)", roff(manName(c.Parent())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// roff escapes what troff would interpret, and separates paragraphs.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		switch {
		case l == "":
			lines[i] = ".PP"
		case strings.HasPrefix(l, "."), strings.HasPrefix(l, "'"):
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
