package main

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// openRun opens what a command's arguments name: nothing for the run in this
// folder or the newest below it, one name for a run if there is one, else
// snapshots.
func openRun(args []string) (*snapshot.Run, error) {
	if len(args) < 2 {
		path, err := files.ResolveRun(strings.Join(args, ""), ".")
		if err == nil {
			return files.OpenRun(path)
		}
		if len(args) == 0 || !isSnapshot(args[0]) {
			return nil, err
		}
	}
	paths := make([]string, len(args))
	for i, name := range args {
		path, err := files.Resolve(name, ".")
		if err != nil {
			return nil, err
		}
		paths[i] = path
	}
	return files.OpenSnapshots(paths...)
}

func isSnapshot(name string) bool {
	_, err := files.Resolve(name, ".")
	return err == nil
}

func openSnapshot(name string) (*snapshot.Snapshot, error) {
	path, err := files.Resolve(name, ".")
	if err != nil {
		return nil, err
	}
	return files.Open(path)
}

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

func textOrJSON() choice { return choice{"text", []string{"text", "json"}} }

func (c *choice) String() string { return c.value }

// Type names the values in help.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set refuses a word that is not one of the few.
func (c *choice) Set(v string) error {
	for _, w := range c.of {
		if v == w {
			c.value = v
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.of, " or "))
}

// textShape is the width and colour of text that goes to path, or to standard
// output where path is "" or "-".
func (env *environment) textShape(path string) (width int, color bool) {
	if path != "" && path != "-" {
		return 0, false
	}
	return env.out.width, env.out.color
}
