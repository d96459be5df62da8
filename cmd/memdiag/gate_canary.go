package main

import (
	"fmt"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// canaryBird is a deliberate leak that a working gate catches: one block on each device, every few steps. Package canary recognizes it
// by the name of this file.
type canaryBird struct {
	devices []*mem.Device
	every   int64
	kept    []*mem.Storage
}

// canarySize is the smallest block of a device, in bytes.
const canarySize = 512

// newCanary leaks in ten or a few more steps, evenly spread, so that some are left after warm-up.
func newCanary(steps int64, devices []*mem.Device) *canaryBird {
	return &canaryBird{devices: devices, every: max(1, steps/10)}
}

// plant is a hook that runs after the steps, so that no training code is called through it.
func (c *canaryBird) plant(m snapshot.Mark) error {
	if m.Phase != train.Training || m.Step%c.every != 0 {
		return nil
	}
	for _, d := range c.devices {
		block, err := d.Alloc(canarySize, snapshot.OwnedByUser)
		if err != nil {
			return fmt.Errorf("canary: %w", err)
		}
		c.kept = append(c.kept, block)
	}
	return nil
}

// release ends the leak, so that the devices can be closed.
func (c *canaryBird) release() {
	for _, block := range c.kept {
		block.Release(snapshot.OwnedByUser)
	}
}
