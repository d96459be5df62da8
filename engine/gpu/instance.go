package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// instanceFunctions are what is called before there is a device.
type instanceFunctions struct {
	enumeratePhysicalDevices, getPhysicalDeviceProperties2,
	getPhysicalDeviceMemoryProperties2, getPhysicalDeviceQueueFamilyProperties,
	enumerateDeviceExtensionProperties, createDevice, getDeviceProcAddr uintptr
}

func (f *instanceFunctions) names() map[string]*uintptr {
	return map[string]*uintptr{
		"vkEnumeratePhysicalDevices":               &f.enumeratePhysicalDevices,
		"vkGetPhysicalDeviceProperties2":           &f.getPhysicalDeviceProperties2,
		"vkGetPhysicalDeviceMemoryProperties2":     &f.getPhysicalDeviceMemoryProperties2,
		"vkGetPhysicalDeviceQueueFamilyProperties": &f.getPhysicalDeviceQueueFamilyProperties,
		"vkEnumerateDeviceExtensionProperties":     &f.enumerateDeviceExtensionProperties,
		"vkCreateDevice":                           &f.createDevice,
		"vkGetDeviceProcAddr":                      &f.getDeviceProcAddr,
	}
}

// instance is the loaded Vulkan and its physical devices.
type instance struct {
	instanceFunctions
	handle handle
}

// loaded is the process's instance. It is never destroyed: with the last one the loader unloads the drivers, and NVIDIA's 580 cannot
// be loaded again after some thirty times, since each takes some of the C library's static thread-local memory for good.
var loaded struct {
	sync.Mutex
	*instance
}

// load loads Vulkan where it is not loaded yet. The error is an *Unusable.
func load() (i *instance, err error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.instance == nil {
		loaded.instance, err = newInstance()
	}
	return loaded.instance, err
}

func newInstance() (*instance, error) {
	getInstanceProcAddr, err := lookup()
	if err != nil {
		return nil, err
	}
	create, err := find(getInstanceProcAddr, 0, "vkCreateInstance")
	if err != nil {
		return nil, err
	}
	app := &applicationInfo{chained: chained{structure: typeApplicationInfo}, name: cstring("memdiag"), api: version12}
	info := &instanceCreateInfo{chained: chained{structure: typeInstanceCreateInfo}, application: app}
	i := &instance{}
	if err := check(call(create, uintptr(unsafe.Pointer(info)), 0, uintptr(unsafe.Pointer(&i.handle)))); err != nil {
		if errors.Is(err, incompatibleDriver) {
			return nil, noDriver()
		}
		return nil, notStarted("vkCreateInstance", err)
	}
	for name, f := range i.names() {
		if *f, err = find(getInstanceProcAddr, i.handle, name); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// find returns the address of a function by one of Vulkan's two ways to ask, which
// take an instance or a device.
func find(getProcAddr, of handle, name string) (uintptr, error) {
	f := call(getProcAddr, of, uintptr(unsafe.Pointer(cstring(name))))
	if f == 0 {
		return 0, &Unusable{Reason: "the Vulkan here lacks " + name + ", which version 1.1 has"}
	}
	return f, nil
}

// physicalDevices lists what the drivers offer.
func (i *instance) physicalDevices() ([]*physicalDevice, error) {
	var count uint32
	if err := check(call(i.enumeratePhysicalDevices, i.handle, uintptr(unsafe.Pointer(&count)), 0)); err != nil {
		return nil, notStarted("vkEnumeratePhysicalDevices", err)
	}
	if count == 0 {
		return nil, noDriver()
	}
	handles := make([]handle, count)
	if err := check(call(i.enumeratePhysicalDevices, i.handle, uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&handles[0])))); err != nil {
		return nil, notStarted("vkEnumeratePhysicalDevices", err)
	}
	devices := make([]*physicalDevice, count)
	for n := range devices {
		devices[n] = i.physicalDevice(handles[n])
	}
	return devices, nil
}

// physicalDevice is a device before it is opened.
type physicalDevice struct {
	instance   *instance
	handle     handle
	properties physicalDeviceProperties
	driver     driverProperties
	// maxAllocation is the most bytes of one allocation.
	maxAllocation uint64
	memory        memoryProperties
	heap          uint32 // that segments come from
	budget        bool   // the driver tells its own figures
	family        uint32 // of queues that compute
	unusable      error  // nil where it can be opened
}

func (i *instance) physicalDevice(h handle) *physicalDevice {
	p := &physicalDevice{instance: i, handle: h}
	p.readProperties()
	memory := &memoryProperties2{chained: chained{structure: typeMemoryProperties2}}
	call(i.getPhysicalDeviceMemoryProperties2, h, uintptr(unsafe.Pointer(memory)))
	p.memory = memory.memory
	if t, ok := p.memoryType(^uint32(0), memoryDeviceLocal); ok {
		p.heap = p.memory.types[t].heap
	}
	p.budget = p.extensions()[budgetExtension]
	family, ok := p.computeFamily()
	p.family = family
	switch {
	case p.properties.api < version11:
		p.unusable = &Unusable{Reason: fmt.Sprintf("it has Vulkan %d.%d; 1.1 is needed", p.properties.api>>22, p.properties.api>>12&0x3ff)}
	case !ok:
		p.unusable = &Unusable{Reason: "it has no queue that computes"}
	}
	return p
}

func (p *physicalDevice) readProperties() {
	first := &physicalDeviceProperties2{chained: chained{structure: typePhysicalDeviceProperties2}}
	call(p.instance.getPhysicalDeviceProperties2, p.handle, uintptr(unsafe.Pointer(first)))
	limits := &maintenance3Properties{chained: chained{structure: typeMaintenance3Properties}}
	driver := &driverProperties{chained: chained{structure: typeDriverProperties}}
	all := &physicalDeviceProperties2{chained: chained{typePhysicalDeviceProperties2, unsafe.Pointer(limits)}}
	if first.properties.api >= version12 { // before, it is an extension's
		limits.next = unsafe.Pointer(driver)
	}
	call(p.instance.getPhysicalDeviceProperties2, p.handle, uintptr(unsafe.Pointer(all)))
	runtime.KeepAlive(all)
	p.properties, p.driver, p.maxAllocation = all.properties, *driver, limits.maxAllocation
}

func (p *physicalDevice) extensions() map[string]bool {
	var count uint32
	call(p.instance.enumerateDeviceExtensionProperties, p.handle, 0, uintptr(unsafe.Pointer(&count)), 0)
	list := make([]extensionProperties, count+1) // never empty
	call(p.instance.enumerateDeviceExtensionProperties, p.handle, 0, uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&list[0])))
	names := make(map[string]bool)
	for _, e := range list[:count] {
		names[gostring(e.name[:])] = true
	}
	return names
}

// computeFamily is the first family of queues that compute.
func (p *physicalDevice) computeFamily() (family uint32, ok bool) {
	var count uint32
	call(p.instance.getPhysicalDeviceQueueFamilyProperties, p.handle, uintptr(unsafe.Pointer(&count)), 0)
	list := make([]queueFamilyProperties, count+1)
	call(p.instance.getPhysicalDeviceQueueFamilyProperties, p.handle, uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&list[0])))
	for n, q := range list[:count] {
		if q.flags&queueCompute != 0 && q.count > 0 {
			return uint32(n), true
		}
	}
	return 0, false
}

// memoryType is the first of the allowed types that has all of the flags; drivers
// list the best first.
func (p *physicalDevice) memoryType(allowed, flags uint32) (uint32, bool) {
	for n, t := range p.memory.types[:p.memory.typeCount] {
		if allowed>>n&1 == 1 && t.flags&flags == flags {
			return uint32(n), true
		}
	}
	return 0, false
}

// figures are the driver's own of the heap that segments come from: what this
// process may use of it, and does. ok is false where it does not tell.
func (p *physicalDevice) figures() (budget, usage uint64, ok bool) {
	if !p.budget {
		return 0, 0, false
	}
	figures := &memoryBudgetProperties{chained: chained{structure: typeMemoryBudgetProperties}}
	memory := &memoryProperties2{chained: chained{typeMemoryProperties2, unsafe.Pointer(figures)}}
	call(p.instance.getPhysicalDeviceMemoryProperties2, p.handle, uintptr(unsafe.Pointer(memory)))
	runtime.KeepAlive(memory)
	return figures.budget[p.heap], figures.usage[p.heap], true
}
