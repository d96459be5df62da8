package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openRegular opens a file for reading, and returns its size. If it is no regular file, the error is an *InputError: a pipe would wait
// for its writer, and a device may have no end.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case info.IsDir():
		return nil, 0, &InputError{Reason: path + ": a folder, not a snapshot", hint: "name a file in it, or a run's snapshot such as snapshot_50"}
	case !info.Mode().IsRegular():
		return nil, 0, notRegular(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err != nil { // another may have taken its place
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

func notRegular(path string) error {
	return &InputError{Reason: path + ": not a regular file, but a pipe, a socket or a device", hint: "save the snapshot to a file first"}
}

// neither is the error for a path that is neither a file nor a folder: a pipe, or a link to nothing. It is nil otherwise.
func neither(name, path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return notRegular(name)
	}
	if to, link := os.Readlink(path); err != nil && link == nil {
		if errors.Is(err, fs.ErrNotExist) {
			return notThere(fmt.Sprintf("%s: a link to %s, which is not there", name, to), "")
		}
		return &InputError{Reason: name + ": a link that cannot be followed: " + reason(err)}
	}
	return nil
}

// reason is an error without the call and the path, which the caller adds.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return err.Error()
}
