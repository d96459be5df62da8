package gpu

import (
	"fmt"
	"unsafe"
)

// The part of Vulkan 1.1 that is used, by hand: names are those of vulkan_core.h
// without their prefix. Go lays these structs out as C does on the platforms where
// there is a loader; a test holds sizes and offsets to the header's.

type handle = uintptr // dispatchable and other handles are 64 bits on those platforms

type result int32

const (
	success               result = 0
	notReady              result = 1
	timeout               result = 2
	outOfHostMemory       result = -1
	outOfDeviceMemory     result = -2
	deviceLost            result = -4
	incompatibleDriver    result = -9
	tooManyObjects        result = -10
	initializationFailed  result = -3
	extensionNotPresent   result = -7
	featureNotPresent     result = -8
	invalidExternalHandle result = -1000072003
)

var resultNames = map[result]string{
	notReady:              "not ready",
	timeout:               "timeout",
	outOfHostMemory:       "out of host memory",
	outOfDeviceMemory:     "out of device memory",
	deviceLost:            "device lost",
	incompatibleDriver:    "incompatible driver",
	tooManyObjects:        "too many objects",
	initializationFailed:  "initialization failed",
	extensionNotPresent:   "extension not present",
	featureNotPresent:     "feature not present",
	invalidExternalHandle: "invalid external handle",
}

func (r result) Error() string {
	if name, ok := resultNames[r]; ok {
		return "vulkan: " + name
	}
	return fmt.Sprintf("vulkan: result %d", int32(r))
}

// check is nil for success.
func check(r uintptr) error {
	if result(int32(r)) == success {
		return nil
	}
	return result(int32(r))
}

// Values of structure type fields.
const (
	typeApplicationInfo               = 0
	typeInstanceCreateInfo            = 1
	typeDeviceQueueCreateInfo         = 2
	typeDeviceCreateInfo              = 3
	typeSubmitInfo                    = 4
	typeMemoryAllocateInfo            = 5
	typeFenceCreateInfo               = 8
	typeBufferCreateInfo              = 12
	typeShaderModuleCreateInfo        = 16
	typePipelineShaderStageCreateInfo = 18
	typeComputePipelineCreateInfo     = 29
	typePipelineLayoutCreateInfo      = 30
	typeDescriptorSetLayoutCreateInfo = 32
	typeDescriptorPoolCreateInfo      = 33
	typeDescriptorSetAllocateInfo     = 34
	typeWriteDescriptorSet            = 35
	typeCommandPoolCreateInfo         = 39
	typeCommandBufferAllocateInfo     = 40
	typeCommandBufferBeginInfo        = 42
	typeMemoryBarrier                 = 46
	typePhysicalDeviceProperties2     = 1000059001
	typeMemoryProperties2             = 1000059006
	typeMaintenance3Properties        = 1000168000
	typeDriverProperties              = 1000196000
	typeMemoryBudgetProperties        = 1000237000
)

// Flags and enumerations.
const (
	queueCompute            = 0x2
	memoryDeviceLocal       = 0x1
	memoryHostVisible       = 0x2
	memoryHostCoherent      = 0x4
	memoryHostCached        = 0x8
	bufferTransferSource    = 0x1
	bufferTransferTarget    = 0x2
	bufferUniform           = 0x10
	bufferStorage           = 0x20
	descriptorUniformBuffer = 6
	descriptorStorageBuffer = 7
	stageCompute            = 0x20
	pipelineCompute         = 0x800
	pipelineTransfer        = 0x1000
	pipelineHost            = 0x4000
	accessShaderRead        = 0x20
	accessShaderWrite       = 0x40
	accessTransferRead      = 0x800
	accessTransferWrite     = 0x1000
	accessHostRead          = 0x2000
	bindPointCompute        = 1
	commandPoolReset        = 0x2
	commandOnce             = 0x1
	version11               = 1<<22 | 1<<12
	version12               = 1<<22 | 2<<12
	maxMemoryTypes          = 32
	maxMemoryHeaps          = 16
	budgetExtension         = "VK_EXT_memory_budget"
	waitForever             = ^uintptr(0)
)

// chained is how every structure begins that others can hang on.
type chained struct {
	structure uint32
	next      unsafe.Pointer
}

type applicationInfo struct {
	chained
	name *byte
	_    uint32
	_    *byte
	_    uint32
	api  uint32
}

type instanceCreateInfo struct {
	chained
	flags          uint32
	application    *applicationInfo
	layerCount     uint32
	layers         **byte
	extensionCount uint32
	extensions     **byte
}

// physicalDeviceLimits keeps what is read of the many limits.
type physicalDeviceLimits struct {
	_                      [28]byte
	maxStorageBufferRange  uint32
	_                      [200]byte
	maxGroupInvocations    uint32
	_                      [92]byte
	minStorageBufferOffset uint64 // what offsets of bindings are multiples of
	_                      [168]byte
}

type physicalDeviceProperties struct {
	api        uint32
	driver     uint32
	vendor     uint32
	device     uint32
	deviceType uint32
	name       [256]byte
	cacheUUID  [16]byte
	limits     physicalDeviceLimits
	sparse     [5]uint32
}

type physicalDeviceProperties2 struct {
	chained
	properties physicalDeviceProperties
}

type driverProperties struct {
	chained
	id          uint32
	name        [256]byte
	info        [256]byte
	conformance [4]byte
}

type maintenance3Properties struct {
	chained
	maxPerSetDescriptors uint32
	maxAllocation        uint64
}

type memoryType struct{ flags, heap uint32 }

type memoryHeap struct {
	size  uint64
	flags uint32
}

type memoryProperties struct {
	typeCount uint32
	types     [maxMemoryTypes]memoryType
	heapCount uint32
	heaps     [maxMemoryHeaps]memoryHeap
}

type memoryProperties2 struct {
	chained
	memory memoryProperties
}

type memoryBudgetProperties struct {
	chained
	budget [maxMemoryHeaps]uint64
	usage  [maxMemoryHeaps]uint64
}

type queueFamilyProperties struct {
	flags, count, timestampBits uint32
	granularity                 [3]uint32
}

type extensionProperties struct {
	name    [256]byte
	version uint32
}

type deviceQueueCreateInfo struct {
	chained
	_          uint32
	family     uint32
	count      uint32
	priorities *float32
}

type deviceCreateInfo struct {
	chained
	flags          uint32
	queueCount     uint32
	queues         *deviceQueueCreateInfo
	layerCount     uint32
	layers         **byte
	extensionCount uint32
	extensions     **byte
	features       unsafe.Pointer
}

type memoryAllocateInfo struct {
	chained
	size       uint64
	memoryType uint32
}

type bufferCreateInfo struct {
	chained
	flags       uint32
	size        uint64
	usage       uint32
	sharing     uint32
	familyCount uint32
	families    *uint32
}

type memoryRequirements struct {
	size, alignment uint64
	types           uint32
}

type shaderModuleCreateInfo struct {
	chained
	flags uint32
	size  uint64 // bytes
	code  *uint32
}

type descriptorSetLayoutBinding struct {
	binding        uint32
	descriptorType uint32
	count          uint32
	stages         uint32
	_              unsafe.Pointer
}

type descriptorSetLayoutCreateInfo struct {
	chained
	flags    uint32
	count    uint32
	bindings *descriptorSetLayoutBinding
}

type pipelineLayoutCreateInfo struct {
	chained
	flags             uint32
	setCount          uint32
	sets              *handle
	pushConstantCount uint32
	pushConstants     unsafe.Pointer
}

type pipelineShaderStageCreateInfo struct {
	chained
	flags          uint32
	stage          uint32
	module         handle
	entry          *byte
	specialization unsafe.Pointer
}

type computePipelineCreateInfo struct {
	chained
	flags     uint32
	stage     pipelineShaderStageCreateInfo
	layout    handle
	base      handle
	baseIndex int32
}

type descriptorPoolSize struct{ descriptorType, count uint32 }

type descriptorPoolCreateInfo struct {
	chained
	flags     uint32
	maxSets   uint32
	sizeCount uint32
	sizes     *descriptorPoolSize
}

type descriptorSetAllocateInfo struct {
	chained
	pool  handle
	count uint32
	sets  *handle
}

type descriptorBufferInfo struct {
	buffer         handle
	offset, extent uint64
}

type writeDescriptorSet struct {
	chained
	set            handle
	binding        uint32
	element        uint32
	count          uint32
	descriptorType uint32
	images         unsafe.Pointer
	buffers        *descriptorBufferInfo
	texels         unsafe.Pointer
}

type commandPoolCreateInfo struct {
	chained
	flags  uint32
	family uint32
}

type commandBufferAllocateInfo struct {
	chained
	pool  handle
	level uint32
	count uint32
}

type commandBufferBeginInfo struct {
	chained
	flags       uint32
	inheritance unsafe.Pointer
}

type submitInfo struct {
	chained
	waitCount    uint32
	waits        *handle
	waitStages   *uint32
	commandCount uint32
	commands     *handle
	signalCount  uint32
	signals      *handle
}

type fenceCreateInfo struct {
	chained
	flags uint32
}

type memoryBarrier struct {
	chained
	from, to uint32
}

type bufferCopy struct{ from, to, size uint64 }

// cstring is a string as C wants it.
func cstring(s string) *byte { return unsafe.SliceData(append([]byte(s), 0)) }

// gostring is what stands before the first zero.
func gostring(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
