package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// result hands write the place that -o names, or standard output where path is
// "" or "-". A file appears whole, under its name, or not at all. Binary data is
// not written to a terminal.
func (env *environment) result(path string, binary bool, write func(io.Writer) error) error {
	if path != "" && path != "-" {
		return env.writeFile(path, write)
	}
	if binary && env.out.tty {
		return &exitError{exitUsage, withHint(errors.New("binary output is not written to a terminal"), "name a file with -o, or redirect standard output")}
	}
	buffered := bufio.NewWriter(env.stdout)
	if err := write(buffered); err != nil {
		return err
	}
	return buffered.Flush()
}

// writeFile writes beside path and renames, unless path is a device or a pipe,
// which must stay what it is. What goes wrong with the file is memdiag's own
// error, not bad input; what write itself reports passes as it is.
func (env *environment) writeFile(path string, write func(io.Writer) error) error {
	info, err := os.Stat(path)
	inPlace := err == nil && !info.Mode().IsRegular()
	var file *os.File
	if inPlace {
		file, err = os.OpenFile(path, os.O_WRONLY, 0)
	} else {
		file, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	}
	if err != nil {
		return cannotWrite(path, err)
	}
	fails := func(err error) error {
		_ = file.Close() // a second close is harmless, its error says nothing new
		if !inPlace {
			_ = os.Remove(file.Name())
		}
		return err
	}
	buffered := bufio.NewWriter(&sink{w: file})
	if err := write(buffered); err != nil {
		return fails(err)
	}
	if err := buffered.Flush(); err != nil {
		return fails(cannotWrite(path, err))
	}
	if inPlace {
		return file.Close()
	}
	// A temporary file is private; a result is as open as any new file.
	if err := file.Chmod(0o644); err != nil {
		return fails(cannotWrite(path, err))
	}
	if err := file.Close(); err != nil {
		return fails(cannotWrite(path, err))
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fails(cannotWrite(path, err))
	}
	return nil
}

// cannotWrite names the path that the user gave, not the temporary one.
func cannotWrite(path string, err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		err = wrapped.Err
	}
	return &exitError{exitOwn, fmt.Errorf("%s: %w", path, err)}
}
