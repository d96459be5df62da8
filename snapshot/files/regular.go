package files

import (
	"os"
)

// openRegular opens a file to read it, and tells its size. What is no regular
// file is an *InputError: a pipe would wait for its writer, a device may have no
// end.
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
	return file, info.Size(), nil
}

func notRegular(path string) error {
	return &InputError{Reason: path + ": not a regular file, but a pipe, a socket or a device", hint: "save the snapshot to a file first; it is not read in one go"}
}

// isSpecial holds for what is there and is neither a file nor a folder.
func isSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
