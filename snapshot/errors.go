package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
)

// FormatError is what every reader returns for a file that is not what it
// should be. Its text is one line, "FILE: byte OFFSET: REASON", or without an offset where the
// fault is of the whole file; Hint is a second line for a person, without its "hint: " prefix, or empty.
type FormatError struct {
	File   string // as the caller named it
	Offset int64  // of the fault, in bytes from the start of what was decoded; NoOffset of the whole file
	Reason string // lower case, no full stop
	Hint   string // the way out; may be empty
	Err    error  // the cause, where an error of the system lies below; may be nil
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
