package main

import (
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
)

// rateFlag is a flag for growth, such as 4KiB/step. It has no unit if it is not set.
type rateFlag diff.Growth

func (f *rateFlag) String() string {
	if f.Unit == "" {
		return ""
	}
	return diff.Growth(*f).String()
}

// Type is the type of the value in help.
func (f *rateFlag) Type() string { return "rate" }

// Set parses a size with its unit; the default unit is a step.
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
