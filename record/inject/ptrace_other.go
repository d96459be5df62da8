//go:build !linux || !amd64

package inject

import "fmt"

func (p *Process) stopAndCall(string) (*Pending, error) {
	return nil, &Error{fmt.Sprintf("process %d is Python %s, which nobody can ask to execute a file on this system", p.PID, p.Version),
		"Python 3.14 or later can be asked anywhere; else start the program with memdiag record"}
}
