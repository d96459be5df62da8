package main

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/snapshot/files"
)

// completeWords lets the shell complete a flag of cmd with one of words.
func completeWords(cmd *cobra.Command, flag string, words []string) {
	// It fails if the flag is missing or completed twice: a defect that its test finds.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeSnapshot completes the argument of a command that takes one snapshot.
func completeSnapshot(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return snapshotsFor(typed), cobra.ShellCompDirectiveDefault
}

// completeRun completes the arguments of a command that takes a run or snapshots. If it finds nothing, the shell completes files.
func completeRun(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	list := snapshotsFor(typed)
	if len(args) == 0 {
		for _, run := range files.Runs(".") {
			if name := filepath.ToSlash(run); strings.HasPrefix(name, typed) {
				list = append(list, name)
			}
		}
	}
	return list, cobra.ShellCompDirectiveDefault
}

// snapshotsFor lists the names of snapshots that begin with what was typed: in the folder that it names, else in this folder or the
// newest run.
func snapshotsFor(typed string) []string {
	folder, _ := path.Split(typed)
	list := files.Names(path.Join(".", folder))
	for i, name := range list {
		list[i] = folder + name
	}
	return slices.DeleteFunc(list, func(name string) bool { return !strings.HasPrefix(name, typed) })
}
