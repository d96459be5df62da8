//go:build !unix

package main

import "os"

// moreEnds are of Unix.
var moreEnds []os.Signal
