package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/report"
)

func newExplainCommand(env *environment) *cobra.Command {
	format := choice{"text", []string{"text", "json", "md"}}
	var output string
	cmd := &cobra.Command{
		Use:     "explain [CAUSE]",
		GroupID: groupFind,
		Short:   "what a cause is, how it looks, and its fix",
		Long: `Explains a cause that diff names: what happens, how it looks in snapshots, the
fix with an example, a built-in workload that shows it, and public reports. Without an argument it lists the causes.`,
		Example: `  memdiag explain
  memdiag explain graph-retained`,
		Args:              takes(0, 1, "cause"),
		ValidArgsFunction: completeCause,
		RunE: func(cmd *cobra.Command, args []string) error {
			as, err := explainFormat(cmd, output, format.value)
			if err != nil {
				return err
			}
			causes := cause.All()
			if len(args) > 0 {
				c := cause.Find(strings.ToLower(args[0]))
				if c == nil {
					return unknownCause(args[0])
				}
				causes = []cause.Cause{*c}
			}
			options := report.TextOptions{}
			options.Width, options.Color = env.textShape(output)
			return env.result(output, false, func(w io.Writer) error {
				switch {
				case as == "json":
					return report.CausesJSON(w, causes)
				case as == "md":
					return report.CausesMarkdown(w, causes)
				case len(args) > 0:
					return report.Cause(w, &causes[0], env.talk.program, options)
				}
				return report.Causes(w, causes, options)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&format, "format", "format on standard output: text, json or md")
	completeWords(cmd, "format", format.of)
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`: .txt, .json or .md")
	return cmd
}

// explainFormat is the format by output's ending, else by the flag.
func explainFormat(cmd *cobra.Command, output, flag string) (string, error) {
	switch strings.ToLower(filepath.Ext(output)) {
	case "":
		return flag, nil
	case ".txt":
		return "text", nil
	case ".json":
		return "json", nil
	case ".md":
		return "md", nil
	}
	return "", usagef(cmd, "%s: the result is a .txt, a .json or a .md", output)
}

// unknownCause is an error that names the causes that share a word with id.
func unknownCause(id string) error {
	var near []string
	for _, c := range cause.All() {
		for word := range strings.SplitSeq(strings.ToLower(id), "-") {
			if len(word) > 3 && strings.Contains(c.ID, word) {
				near = append(near, c.ID)
				break
			}
		}
	}
	hint := "memdiag explain lists the causes"
	if len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? memdiag explain lists all", strings.Join(near, " or "))
	}
	return &exitError{exitUsage, withHint(fmt.Errorf("no cause is called %q", id), "%s", hint)}
}

func completeCause(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	if len(args) == 0 {
		for _, c := range cause.All() {
			if strings.HasPrefix(c.ID, typed) {
				ids = append(ids, c.ID+"\t"+c.Name)
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
