package main

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/gpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// backends are the values of --backend.
var backends = []string{"cpu", "gpu"}

// backend is what a workload trains on.
type backend struct {
	driver  mem.Driver
	kernels func(threads int) engine.Kernels // threads count on the processor alone
	// close ends the backend, behind its devices.
	close func() error
}

// openBackend opens what --backend names, and of several GPUs the one that which
// does, the value of MEMDIAG_GPU, as gpu.OpenNamed takes it. Nothing of a GPU is
// touched before it is asked for.
func openBackend(name, which string) (backend, error) {
	if name != "gpu" {
		return backend{mem.Host(), cpu.New, func() error { return nil }}, nil
	}
	d, err := gpu.OpenNamed(which)
	if err != nil {
		hint := "memdiag devices lists what there is"
		if own := hintOf(err); own != "" {
			hint = own + "; " + hint
		}
		if which != "" {
			err = fmt.Errorf("MEMDIAG_GPU=%q: %w", which, err)
		}
		return backend{}, &exitError{exitOwn, withHint(err, "%s", hint)}
	}
	return backend{d, func(int) engine.Kernels { return gpu.New(d) }, d.Close}, nil
}
