//go:build !unix

package main

import "os"

// moreEnds is empty: these signals exist on Unix only.
var moreEnds []os.Signal
