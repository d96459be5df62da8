package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// readSource reads the file of --source, which must occur in the snapshot's stacks.
func readSource(path string, s *snapshot.Snapshot) (*report.Source, error) {
	recorded, others := report.RecordedAs(s, path)
	switch {
	case len(others) > 1:
		return nil, &exitError{exitUsage, withHint(fmt.Errorf("--source %s: the stacks name several such files", path), "name more of its path: %s", strings.Join(some(others), ", "))}
	case recorded == "":
		return nil, &exitError{exitUsage, withHint(fmt.Errorf("--source %s: no live memory is from this file", path), "without --source, memdiag show lists the call sites that hold most")}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|notWaiting, 0)
	if err != nil {
		return nil, &exitError{exitBadInput, fmt.Errorf("%s: %w", path, reasonOf(err))}
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxSource+1))
	}
	if err == nil && len(text) > maxSource {
		err = fmt.Errorf("a source file may have %s", snapshot.Bytes(maxSource))
	}
	if err != nil {
		return nil, &exitError{exitBadInput, fmt.Errorf("%s: %w", path, reasonOf(err))}
	}
	taken := s.Mark.Time
	return &report.Source{Path: path, File: recorded, Lines: strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n"), Changed: !taken.IsZero() && info.ModTime().After(taken)}, nil
}

// some returns the first few of many names.
func some(names []string) []string {
	const few = 5
	if len(names) > few {
		return append(append([]string{}, names[:few]...), "…")
	}
	return names
}
