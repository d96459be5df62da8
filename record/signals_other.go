//go:build !unix

package record

import "os"

// passing has nothing to do where a console tells all its processes.
type passing struct{}

func passSignals(_ bool) *passing { return &passing{} }

// Witness is of Unix.
func Witness() bool { return false }

func (p *passing) to(_ *os.Process) {}
func (p *passing) stop()            {}

func endedBySignal(_ *os.ProcessState, code int) (string, int) { return "", code }

// ofOthers is not known here.
func ofOthers(os.FileInfo) bool { return false }

// ours is not known here.
func ours(os.FileInfo) bool { return true }
