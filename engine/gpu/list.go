package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Unusable says why a device, or every device, cannot be used.
type Unusable struct {
	Reason string
	hint   string
}

func (e *Unusable) Error() string { return e.Reason }

// Hint is the way out; "" where none is known.
func (e *Unusable) Hint() string { return e.hint }

func noDriver() error {
	return &Unusable{Reason: "there is no Vulkan driver here", hint: driverHint}
}

const driverHint = "Debian and Ubuntu have the loader in libvulkan1, and in mesa-vulkan-drivers a driver for any processor; VK_DRIVER_FILES can name another"

// notStarted is for what Vulkan's loader or a driver answers with before there is a
// device. The name of its code can mislead: loaders call a manifest that is no JSON
// "out of host memory".
func notStarted(function string, err error) error {
	return &Unusable{
		Reason: function + ": " + err.Error(),
		hint:   "with VK_LOADER_DEBUG=error,driver in the environment, Vulkan's loader tells which drivers it tries, and what is wrong with their files",
	}
}

// Type is what a device is made of.
type Type string

// Types of device.
const (
	Discrete   Type = "discrete"
	Integrated Type = "integrated"
	Virtual    Type = "virtual"
	Software   Type = "software" // a driver that computes on the processor
	Other      Type = "other"
)

// types are Vulkan's numbers for them.
var types = [...]Type{Other, Integrated, Discrete, Virtual, Software}

func typeOf(p *physicalDevice) Type {
	if n := p.properties.deviceType; n < uint32(len(types)) {
		return types[n]
	}
	return Other
}

// Info describes a device that a driver offers.
type Info struct {
	Name   string // "NVIDIA H200", "llvmpipe (LLVM 15.0.6, 256 bits)"
	Driver string // its name and version, as it calls them
	Type   Type
	Memory snapshot.Bytes // of the heap that segments come from
	// Budget is what the driver would let this process use now, Used what it says
	// this process uses; Unknown where it does not tell.
	Budget, Used snapshot.Bytes
	Unusable     error // why it cannot be opened; nil where it can
}

// List returns what the drivers of this machine offer, the device that Open takes
// first. The error is an *Unusable if there is no loader or no driver, or if they do
// not start.
func List() ([]Info, error) {
	i, err := load()
	if err != nil {
		return nil, err
	}
	devices, err := i.physicalDevices()
	if err != nil {
		return nil, err
	}
	preferred(devices)
	infos := make([]Info, len(devices))
	for n, p := range devices {
		infos[n] = p.info()
	}
	return infos, nil
}

// preferred sorts devices: usable ones first, and of these real ones.
func preferred(devices []*physicalDevice) {
	order := []Type{Discrete, Integrated, Virtual, Other, Software}
	rank := func(p *physicalDevice) int {
		r := slices.Index(order, typeOf(p))
		if p.unusable != nil {
			r += len(order)
		}
		return r
	}
	slices.SortStableFunc(devices, func(a, b *physicalDevice) int { return rank(a) - rank(b) })
}

func (p *physicalDevice) info() Info {
	info := Info{
		Name: gostring(p.properties.name[:]), Driver: driverOf(p), Type: typeOf(p),
		Memory: snapshot.Bytes(p.memory.heaps[p.heap].size),
		Budget: snapshot.Unknown, Used: snapshot.Unknown, Unusable: p.unusable,
	}
	if budget, used, ok := p.figures(); ok {
		info.Budget, info.Used = snapshot.Bytes(budget), snapshot.Bytes(used)
	}
	return info
}

// driverOf is the driver's name and version; "" where it has only a number.
func driverOf(p *physicalDevice) string {
	name, version := gostring(p.driver.name[:]), gostring(p.driver.info[:])
	switch {
	case version == "":
		return name
	case name == "":
		return version
	}
	return name + " " + version
}

// choose returns the device to open: the first that can be used, or the one that
// which names, by its place in List's order or by a part of its name: "1" is a place,
// "4090" none.
func choose(devices []*physicalDevice, which string) (*physicalDevice, error) {
	preferred(devices)
	at, err := strconv.Atoi(which)
	switch {
	case which == "":
		at = 0
	case err != nil || at < 0 || at >= len(devices):
		at = slices.IndexFunc(devices, func(p *physicalDevice) bool {
			return strings.Contains(strings.ToLower(gostring(p.properties.name[:])), strings.ToLower(which))
		})
	}
	if at < 0 {
		return nil, &Unusable{Reason: fmt.Sprintf("no device is %q, of %d", which, len(devices)), hint: "a device is named by a part of its name, or by its place from 0"}
	}
	p := devices[at]
	if p.unusable != nil {
		u, ok := errors.AsType[*Unusable](p.unusable)
		if !ok {
			return nil, p.unusable
		}
		return nil, &Unusable{Reason: gostring(p.properties.name[:]) + " cannot be used: " + u.Reason, hint: "memdiag devices lists all"}
	}
	return p, nil
}
