package gpu

import (
	"fmt"
	"sync"
	"unsafe"
)

const (
	// depth is how many batches there are: one is filled while the others run. A
	// block that was freed waits for as many at most.
	depth = 3
	// batchDispatches is how many kernels one batch has. It costs a hundred
	// microseconds to hand a batch to a software driver.
	batchDispatches = 64
	// paramBytes is the room for one kernel's parameters, a multiple of what any
	// device aligns uniform buffers to.
	paramBytes = 256
	// stagingBytes is what a batch can carry between the host and the device.
	stagingBytes = 4 << 20
	stagingStart = batchDispatches * paramBytes
	hostBytes    = stagingStart + stagingBytes
	// maxBindings is the most buffers of one kernel, beside its parameters. Vulkan
	// promises as many on each device.
	maxBindings = 4
)

// batch is commands that go to the device together, and what they read and write on
// the host.
type batch struct {
	commands handle
	fence    handle
	sets     [batchDispatches]handle
	host     *memory
	bytes    []byte // of host: parameters, then staging
	ticket   uint64

	dispatches int
	staged     int
}

// queue records commands in batches and runs them in order. What a command writes,
// the next one sees. The first error stays: the device is lost, and so is the work.
type queue struct {
	device *Device

	mu        sync.Mutex
	handle    handle
	pool      handle // of command buffers
	setLayout handle
	layout    handle
	sets      handle // pool of descriptor sets
	pipelines map[string]handle
	batches   [depth]batch
	scratch   *memory
	status    *memory

	filling  *batch // nil between batches
	bound    handle // pipeline that commands of filling run
	last     uint64 // ticket of the batch begun last
	handed   uint64 // of the one that the device took last
	finished uint64
	err      error

	// What a dispatch points at: kept, so that it makes no garbage.
	barrier *memoryBarrier
	infos   [maxBindings + 1]descriptorBufferInfo
	writes  [maxBindings + 1]writeDescriptorSet
	region  bufferCopy
}

// binding is a range of a buffer that a kernel sees.
type binding struct {
	buffer         handle
	offset, extent uint64
}

func (q *queue) open(d *Device) error {
	q.device = d
	q.pipelines = make(map[string]handle)
	q.barrier = &memoryBarrier{chained: chained{structure: typeMemoryBarrier}}
	call(d.getDeviceQueue, d.handle, uintptr(d.physical.family), 0, uintptr(unsafe.Pointer(&q.handle)))
	if err := q.createLayout(); err != nil {
		return err
	}
	pool := &commandPoolCreateInfo{chained: chained{structure: typeCommandPoolCreateInfo}, flags: commandPoolReset, family: d.physical.family}
	if err := check(call(d.createCommandPool, d.handle, uintptr(unsafe.Pointer(pool)), 0, uintptr(unsafe.Pointer(&q.pool)))); err != nil {
		return fmt.Errorf("vkCreateCommandPool: %w", err)
	}
	for i := range q.batches {
		if err := q.batches[i].open(q); err != nil {
			return err
		}
	}
	var err error
	usage := uint32(bufferStorage | bufferTransferSource | bufferTransferTarget)
	if q.scratch, err = d.allocate(scratchBytes, usage, memoryDeviceLocal); err != nil {
		return err
	}
	q.status, err = d.allocate(statusBytes, usage, memoryDeviceLocal)
	return err
}

func (b *batch) open(q *queue) error {
	d := q.device
	commands := &commandBufferAllocateInfo{chained: chained{structure: typeCommandBufferAllocateInfo}, pool: q.pool, count: 1}
	if err := check(call(d.allocateCommandBuffers, d.handle, uintptr(unsafe.Pointer(commands)), uintptr(unsafe.Pointer(&b.commands)))); err != nil {
		return fmt.Errorf("vkAllocateCommandBuffers: %w", err)
	}
	fence := &fenceCreateInfo{chained: chained{structure: typeFenceCreateInfo}}
	if err := check(call(d.createFence, d.handle, uintptr(unsafe.Pointer(fence)), 0, uintptr(unsafe.Pointer(&b.fence)))); err != nil {
		return fmt.Errorf("vkCreateFence: %w", err)
	}
	layouts := make([]handle, len(b.sets))
	for i := range layouts {
		layouts[i] = q.setLayout
	}
	sets := &descriptorSetAllocateInfo{chained: chained{structure: typeDescriptorSetAllocateInfo}, pool: q.sets, count: uint32(len(layouts)), sets: &layouts[0]}
	if err := check(call(d.allocateDescriptorSets, d.handle, uintptr(unsafe.Pointer(sets)), uintptr(unsafe.Pointer(&b.sets[0])))); err != nil {
		return fmt.Errorf("vkAllocateDescriptorSets: %w", err)
	}
	usage := uint32(bufferUniform | bufferTransferSource | bufferTransferTarget)
	var err error
	// Downloads are read from it, which is slow where the host does not cache it.
	if b.host, err = d.allocate(hostBytes, usage, memoryHostVisible|memoryHostCoherent|memoryHostCached); err != nil {
		b.host, err = d.allocate(hostBytes, usage, memoryHostVisible|memoryHostCoherent)
	}
	if err != nil {
		return err
	}
	b.bytes, err = b.host.mapped()
	return err
}

// close waits for the device and gives everything back that was taken, as far as it
// was.
func (q *queue) close() {
	d := q.device
	if d == nil {
		return
	}
	q.finish(q.queued())
	for _, p := range q.pipelines {
		call(d.destroyPipeline, d.handle, p, 0)
	}
	for i := range q.batches {
		b := &q.batches[i]
		call(d.destroyFence, d.handle, b.fence, 0)
		if b.host != nil {
			b.host.free()
		}
	}
	for _, m := range []*memory{q.scratch, q.status} {
		if m != nil {
			m.free()
		}
	}
	// Command buffers and sets go with their pools; Vulkan takes 0 for none.
	call(d.destroyCommandPool, d.handle, q.pool, 0)
	call(d.destroyDescriptorPool, d.handle, q.sets, 0)
	call(d.destroyPipelineLayout, d.handle, q.layout, 0)
	call(d.destroyDescriptorSetLayout, d.handle, q.setLayout, 0)
}

func (q *queue) queued() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

func (q *queue) done() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.finished
}

// finish hands over what was recorded up to a ticket and waits for it.
func (q *queue) finish(ticket uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait(ticket)
}

// fault is the error that stays.
func (q *queue) fault() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// The methods below run under the lock.

// fail keeps the first error, after which nothing is begun. What the device took
// before is waited for, since it may still run, and what it uses is freed next; of a
// lost device Vulkan promises that such a wait ends.
func (q *queue) fail(what string, err error) {
	if q.err == nil {
		q.err = lost(fmt.Errorf("%s: %w", what, err))
	}
	for ticket := q.finished + 1; ticket <= q.handed; ticket++ {
		if q.await(ticket) != nil {
			break
		}
	}
	q.filling, q.finished = nil, q.last
}

// wait waits for a ticket.
func (q *queue) wait(ticket uint64) {
	if q.filling != nil && q.filling.ticket <= ticket {
		q.submit()
	}
	for q.finished < ticket && q.err == nil {
		if err := q.await(q.finished + 1); err != nil {
			q.fail("vkWaitForFences", err)
			return
		}
		q.finished++
	}
}

// await returns once the device is done with a batch that it took.
func (q *queue) await(ticket uint64) error {
	b := &q.batches[ticket%depth]
	return check(call(q.device.waitForFences, q.device.handle, 1, uintptr(unsafe.Pointer(&b.fence)), 1, waitForever))
}

// begin makes filling a batch that takes commands; it is false once the queue has
// failed.
func (q *queue) begin() bool {
	if q.filling != nil || q.err != nil {
		return q.err == nil
	}
	ticket := q.last + 1
	if ticket > depth {
		q.wait(ticket - depth) // it has the same place
		if q.err != nil {
			return false
		}
	}
	b := &q.batches[ticket%depth]
	d := q.device
	if err := check(call(d.resetFences, d.handle, 1, uintptr(unsafe.Pointer(&b.fence)))); err != nil {
		q.fail("vkResetFences", err)
		return false
	}
	info := &commandBufferBeginInfo{chained: chained{structure: typeCommandBufferBeginInfo}, flags: commandOnce}
	if err := check(call(d.beginCommandBuffer, b.commands, uintptr(unsafe.Pointer(info)))); err != nil {
		q.fail("vkBeginCommandBuffer", err)
		return false
	}
	b.ticket, b.dispatches, b.staged = ticket, 0, 0
	q.filling, q.last, q.bound = b, ticket, 0
	return true
}

// submit hands filling to the device.
func (q *queue) submit() {
	b, d := q.filling, q.device
	q.filling = nil
	q.order(pipelineTransfer, pipelineHost, accessTransferWrite, accessHostRead, b)
	if err := check(call(d.endCommandBuffer, b.commands)); err != nil {
		q.fail("vkEndCommandBuffer", err)
		return
	}
	info := &submitInfo{chained: chained{structure: typeSubmitInfo}, commandCount: 1, commands: &b.commands}
	if err := check(call(d.queueSubmit, q.handle, 1, uintptr(unsafe.Pointer(info)), b.fence)); err != nil {
		q.fail("vkQueueSubmit", err)
		return
	}
	q.handed = b.ticket
}

// order makes commands of the second stage wait for those of the first before them.
func (q *queue) order(stages, then, writes, reads uint32, b *batch) {
	q.barrier.from, q.barrier.to = writes, reads
	call(q.device.cmdPipelineBarrier, b.commands, uintptr(stages), uintptr(then), 0,
		1, uintptr(unsafe.Pointer(q.barrier)), 0, 0, 0, 0)
}

// inOrder makes the commands that follow see what was written until now.
func (q *queue) inOrder() {
	const writes = accessShaderWrite | accessTransferWrite
	const reads = accessShaderRead | accessTransferRead
	q.order(pipelineCompute|pipelineTransfer, pipelineCompute|pipelineTransfer, writes, writes|reads, q.filling)
}
