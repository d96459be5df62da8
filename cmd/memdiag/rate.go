package main

import (
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
)

// rateFlag is a flag that takes growth, such as 4KiB/step; it has no unit where it is not
// set.
type rateFlag diff.Growth

func (f *rateFlag) String() string {
	if f.Unit == "" {
		return ""
	}
	return diff.Growth(*f).String()
}

// Type is what help shows for the value.
func (f *rateFlag) Type() string { return "rate" }

// Set parses a size with its unit, a step where none is given.
func (f *rateFlag) Set(text string) error {
	if !strings.Contains(text, "/") {
		text += "/step"
	}
	g, err := series.ParseGrowth(text)
	if err == nil {
		*f = rateFlag(g)
	}
	return err
}
