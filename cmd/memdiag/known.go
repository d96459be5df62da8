package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/baseline"
)

// teamsKnown is the file of known leaks that is read if no other is named.
var teamsKnown = filepath.Join(".memdiag", "known.yml")

// knownFlag lets a command name a file of known leaks of libraries.
func (env *environment) knownFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&env.knownFile, "known", "", "a `FILE` of known leaks of libraries, in addition to those that memdiag knows (default .memdiag/known.yml, if it exists)")
}

// library returns the known leaks of libraries that the user has listed. They are read once, however many ranks are compared with them.
func (env *environment) library() ([]baseline.LibraryLeak, error) {
	if env.usersLibrary == nil {
		env.usersLibrary = sync.OnceValues(env.readLibrary)
	}
	return env.usersLibrary()
}

func (env *environment) readLibrary() ([]baseline.LibraryLeak, error) {
	name := env.knownFile
	if name == "" {
		name = teamsKnown
	}
	if info, err := os.Stat(name); env.knownFile == "" && err == nil && !info.Mode().IsRegular() {
		return nil, badInput(fmt.Errorf("%s: no regular file", name)) // it is the default file, and a pipe would wait for its writer
	}
	f, err := os.Open(name) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) && env.knownFile == "" {
		return nil, nil
	}
	if err != nil {
		return nil, badInput(err)
	}
	defer f.Close() //nolint:errcheck // it is read only
	text, err := io.ReadAll(io.LimitReader(f, maxBaseline+1))
	if err != nil {
		return nil, badInput(fmt.Errorf("%s: %w", name, err))
	}
	if len(text) > maxBaseline {
		return nil, badInput(fmt.Errorf("%s: larger than %d MiB", name, maxBaseline>>20))
	}
	known, err := baseline.ParseLibraryLeaks(text)
	if err != nil {
		return nil, badInput(withHint(fmt.Errorf("%s: %w", name, err), docsAddress+"baseline.md describes the file"))
	}
	return known, nil
}
