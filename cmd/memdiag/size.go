package main

import (
	"errors"

	"github.com/memdiag/memdiag/snapshot"
)

// sizeFlag is a flag that takes a size, such as 4GiB.
type sizeFlag snapshot.Bytes

func (s *sizeFlag) String() string {
	if *s == 0 {
		return "0"
	}
	return snapshot.Bytes(*s).String()
}

// Type is the type of the value in help.
func (s *sizeFlag) Type() string { return "size" }

// Set parses the flag.
func (s *sizeFlag) Set(text string) error {
	size, err := snapshot.ParseBytes(text)
	if err != nil {
		return err
	}
	if size < 0 {
		return errors.New("a size is not negative")
	}
	*s = sizeFlag(size)
	return nil
}
