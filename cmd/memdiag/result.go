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
)

// result hands write the place that -o names, or standard output where path is
// "" or "-". A file appears whole, under its name, or not at all. Binary data is
// not written to a terminal.
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

// standard is true for a path that is standard output. /dev/stdout may be a file that
// has lines already, in which another file must not take its place.
func standard(path string) bool { return path == "-" || path == "/dev/stdout" }

// writeFile writes beside path and renames, unless path is a device or a pipe,
// which must stay what it is. A link stays a link. What goes wrong with the file
// is memdiag's own error, not bad input; what write itself returns passes as it
// is.
func (env *environment) writeFile(path string, write func(io.Writer) error) error {
	target := behind(path)
	info, err := os.Stat(path) // not of target: a pipe behind /dev/fd/63 has no name of its own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotWrite(path, err)
	}
	if err == nil && !info.Mode().IsRegular() {
		return env.fillThere(path, os.O_WRONLY, write)
	}
	// Not os.CreateTemp: its files are private, a result obeys the umask.
	beside := filepath.Join(filepath.Dir(target), ".memdiag."+rand.Text())
	file, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return cannotWrite(path, err)
	}
	// After the rename there is nothing to remove; after a panic there is.
	defer func() { _ = os.Remove(beside) }()
	if err := env.fill(path, file, write); err != nil {
		return err
	}
	if err := os.Rename(beside, target); err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// maxLinks is how many links the kernel follows too.
const maxLinks = 40

// behind is what the links at path lead to, which need not be there.
func behind(path string) string {
	target := path
	for range maxLinks {
		to, err := os.Readlink(target)
		if err != nil {
			return target
		}
		if !filepath.IsAbs(to) {
			// Not filepath.Join: to may leave a folder that is itself a link.
			to = filepath.Dir(target) + string(filepath.Separator) + to
		}
		target = to
	}
	return path
}

// fillThere writes to what path itself is: to open a pipe waits for its reader.
func (env *environment) fillThere(path string, flag int, write func(io.Writer) error) error {
	file, err := awaited(env, noNews, func() (*os.File, error) { return os.OpenFile(path, flag, 0o666) })
	if err != nil {
		return cannotWrite(path, err)
	}
	return env.fill(path, file, write)
}

// fill writes file, which the user calls path, and closes it.
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

// sync has the file on the disk before it gets its name: after a power failure it is there whole, or not at all.
func (s *sink) sync(file *os.File) error {
	if s.err == nil {
		s.err = file.Sync()
	}
	return s.err
}

// cannotWrite names the path that the user gave, not a temporary one.
func cannotWrite(path string, err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		err = at.Err
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	return &exitError{exitOwn, fmt.Errorf("%s: %w", path, err)}
}
