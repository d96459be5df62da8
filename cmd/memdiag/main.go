// Command memdiag finds memory leaks of training runs.
package main

import (
	"os"

	"github.com/memdiag/memdiag/record"
)

func main() {
	if record.Witness() {
		return
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
