//go:build !unix

package record

import (
	"errors"
	"os"
)

func lock(*os.File) error { return errors.ErrUnsupported }

func lockShared(*os.File) error { return errors.ErrUnsupported }
