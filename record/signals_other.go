//go:build !unix

package record

import "os"

// passing does nothing: on this system a console signals all its processes itself.
type passing struct{}

func passSignals(_ bool) *passing { return &passing{} }

// Witness is false: witnesses exist on Unix only.
func Witness() bool { return false }

func (p *passing) early() []os.Signal              { return nil }
func (p *passing) to(_ *os.Process, _ []os.Signal) {}
func (p *passing) stop()                           {}

func endedBySignal(_ *os.ProcessState, code int) (string, int) { return "", code }

// ofOthers is false: this system does not show owners.
func ofOthers(os.FileInfo) bool { return false }

// ours is true: this system does not show owners.
func ours(os.FileInfo) bool { return true }
