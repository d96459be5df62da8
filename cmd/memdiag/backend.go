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

// backend is the hardware and the kernels that a workload trains on.
type backend struct {
	driver  mem.Driver
	kernels func(threads int) engine.Kernels // threads count only on the processor
	// close ends the backend, after its devices.
	close func() error
}

// openBackend opens the backend that --backend names. which, the value of MEMDIAG_GPU, selects one of several GPUs, as in
// gpu.OpenNamed. No GPU is touched before it is requested.
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
