package main

import (
	"fmt"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// canaryBird is a known leak, which a gate that works catches: a block on each device
// in every so many steps. Package canary tells it by the name of this file.
type canaryBird struct {
	devices []*mem.Device
	every   int64
	kept    []*mem.Storage
}

// canarySize is the smallest block that a device has, in bytes.
const canarySize = 512

// newCanary plants in ten steps or a few more, evenly spread, so that a few are left when the warm-up is.
func newCanary(steps int64, devices []*mem.Device) *canaryBird {
	return &canaryBird{devices: devices, every: max(1, steps/10)}
}

// plant is a hook behind the steps, so that nothing that trains is called through it.
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
