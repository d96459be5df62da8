package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// result calls write with the file that -o names, or with standard output if path is "" or "-". A file appears under its name complete,
// or not at all. Binary data is not written to a terminal.
func (env *environment) result(path string, binary bool, write func(io.Writer) error) error {
	if path != "" && !standard(path) {
		return env.writeFile(path, func(w io.Writer) error { return write(interruptible{w, env.interrupted}) })
	}
	if binary && env.out.tty {
		return &exitError{exitUsage, withHint(errors.New("binary output is not written to a terminal"), "name a file with -o, or redirect standard output")}
	}
	buffered := bufio.NewWriter(env.stdout)
	if err := write(interruptible{buffered, env.interrupted}); err != nil {
		return err
	}
	return buffered.Flush()
}

// standard reports whether a path is standard output. /dev/stdout may be a file that already has lines and must not be replaced.
func standard(path string) bool { return path == "-" || path == "/dev/stdout" }

// writeFile writes a temporary file beside path and renames it, unless path is a device or a pipe, which must not be replaced. A link
// stays a link. Problems with the file are memdiag's own errors, not bad input; an error from write is returned unchanged.
func (env *environment) writeFile(path string, write func(io.Writer) error) error {
	target := behind(path)
	info, err := os.Stat(path) // not of target: a pipe behind /dev/fd/63 has no name of its own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotWrite(path, err)
	}
	if err == nil && !info.Mode().IsRegular() {
		return env.fillThere(path, os.O_WRONLY, write)
	}
	// Not os.CreateTemp, whose files are private: a result follows the umask.
	beside := filepath.Join(filepath.Dir(target), ".memdiag."+rand.Text())
	file, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cannotWrite(path, err)
	}
	// After the rename there is nothing to remove, but after a panic there is.
	defer func() { _ = os.Remove(beside) }()
	if err := env.fill(path, file, write); err != nil {
		return err
	}
	if err := os.Rename(beside, target); err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// maxLinks is how many links the kernel follows, too.
const maxLinks = 40

// behind is the target of the links at path, which need not exist.
func behind(path string) string {
	target := path
	for range maxLinks {
		to, err := os.Readlink(target)
		if err != nil {
			return target
		}
		if !filepath.IsAbs(to) {
			// Not filepath.Join, since to may leave a folder that is itself a link.
			to = filepath.Dir(target) + string(filepath.Separator) + to
		}
		target = to
	}
	return path
}

// fillThere writes to path itself; opening a pipe waits for its reader.
func (env *environment) fillThere(path string, flag int, write func(io.Writer) error) error {
	file, err := awaited(env, noNews, func() (*os.File, error) { return os.OpenFile(path, flag, 0o666) })
	if err != nil {
		return cannotWrite(path, err)
	}
	return env.fill(path, file, write)
}

// fill writes to file, which the user calls path, and closes it.
func (env *environment) fill(path string, file *os.File, write func(io.Writer) error) error {
	into := &sink{w: abandoning{file, env.interrupted}}
	buffered := bufio.NewWriter(into)
	err := write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if info, gone := file.Stat(); err == nil && gone == nil && info.Mode().IsRegular() {
		err = into.sync(file)
	}
	closed := file.Close()
	switch {
	case into.err != nil:
		return cannotWrite(path, into.err)
	case err != nil:
		return err
	case closed != nil:
		return cannotWrite(path, closed)
	}
	return nil
}

// sync flushes the file to the disk before it is renamed: after a power failure it is complete or absent.
func (s *sink) sync(file *os.File) error {
	if s.err == nil {
		s.err = file.Sync()
	}
	return s.err
}

// cannotWrite names the path that the user gave, in place of a temporary file's. It adds a hint if it knows one.
func cannotWrite(path string, err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		err = at.Err
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	failed := fmt.Errorf("%s: %w", path, err)
	if errors.Is(err, fs.ErrNotExist) {
		failed = withHint(failed, "make the folder first, or choose another")
	} else if hint := writeHint(err); hint != "" {
		failed = withHint(failed, "%s", hint)
	}
	return &exitError{exitOwn, failed}
}

// writeHint says what to do where a file or a folder cannot be written; "" if that is unknown.
func writeHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "choose a folder that you may write"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space, or choose a folder on another disk"
	}
	return ""
}
