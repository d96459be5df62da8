package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
)

// FormatError is returned by every reader for a file that is not valid. Its text is one line, "FILE: byte OFFSET: REASON", without the
// offset if the fault concerns the whole file. Hint is a second line for a person, without its "hint: " prefix, or empty.
type FormatError struct {
	File   string // as the caller named it
	Offset int64  // offset of the fault, in bytes from the start of the decoded data; NoOffset for the whole file
	Reason string // lower case, no full stop
	Hint   string // the way out; may be empty
	Err    error  // the cause, if it is an error of the system; may be nil
}

// NoOffset is the offset of a fault that no place in a file has.
const NoOffset int64 = -1

func (e *FormatError) Error() string {
	reason := e.Reason
	// The system's errors name the file again.
	if at, ok := errors.AsType[*fs.PathError](e.Err); ok && reason == at.Error() {
		reason = at.Op + ": " + at.Err.Error()
	}
	if e.Offset == NoOffset {
		return fmt.Sprintf("%s: %s", e.File, reason)
	}
	return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, reason)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
