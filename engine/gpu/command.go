package gpu

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// dispatch runs a shader over so many groups. Its parameters are at most paramBytes.
func (q *queue) dispatch(shader string, params []uint32, groups [3]uint32, bound ...binding) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	pipeline, err := q.pipeline(shader)
	if err != nil {
		return err
	}
	if !q.begin() {
		return nil // Sync tells
	}
	b, d := q.filling, q.device
	at := b.dispatches * paramBytes
	for i, p := range params {
		binary.NativeEndian.PutUint32(b.bytes[at+4*i:], p)
	}
	set := &b.sets[b.dispatches]
	q.bind(0, *set, descriptorUniformBuffer, binding{b.host.buffer, uint64(at), paramBytes})
	for i := range maxBindings {
		// What the shader has no use for is bound all the same: of the set's last use
		// there may be a buffer that was freed, and lavapipe looks at all.
		r := binding{q.scratch.buffer, 0, scratchBytes}
		if i < len(bound) {
			r = bound[i]
		}
		q.bind(i+1, *set, descriptorStorageBuffer, r)
	}
	call(d.updateDescriptorSets, d.handle, maxBindings+1, uintptr(unsafe.Pointer(&q.writes[0])), 0, 0)
	if q.bound != pipeline {
		call(d.cmdBindPipeline, b.commands, bindPointCompute, pipeline)
		q.bound = pipeline
	}
	call(d.cmdBindDescriptorSets, b.commands, bindPointCompute, q.layout, 0, 1, uintptr(unsafe.Pointer(set)), 0, 0)
	call(d.cmdDispatch, b.commands, uintptr(groups[0]), uintptr(groups[1]), uintptr(groups[2]))
	q.inOrder()
	b.dispatches++
	if b.dispatches == batchDispatches {
		q.submit()
	}
	return nil
}

func (q *queue) bind(at int, set handle, kind uint32, r binding) {
	q.infos[at] = descriptorBufferInfo(r)
	q.writes[at] = writeDescriptorSet{
		chained: chained{structure: typeWriteDescriptorSet}, set: set, binding: uint32(at),
		count: 1, descriptorType: kind, buffers: &q.infos[at],
	}
}

// fill sets a range of words, as vkCmdFillBuffer does.
func (q *queue) fill(to binding, word uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begin() {
		call(q.device.cmdFillBuffer, q.filling.commands, to.buffer, uintptr(to.offset), uintptr(to.extent), uintptr(word))
		q.inOrder()
	}
}

// copy copies between ranges of equal extent that do not overlap.
func (q *queue) copy(to, from binding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begin() {
		q.record(to.buffer, from.buffer, bufferCopy{from.offset, to.offset, to.extent})
	}
}

func (q *queue) record(to, from handle, region bufferCopy) {
	q.region = region
	call(q.device.cmdCopyBuffer, q.filling.commands, from, to, 1, uintptr(unsafe.Pointer(&q.region)))
	q.inOrder()
}

// stage finds room in the filling batch to carry up to n bytes, and at least one. It
// returns where in the batch's bytes, and 0 once the queue has failed.
func (q *queue) stage(n int) (at, room int) {
	if q.filling != nil && q.filling.staged == stagingBytes {
		q.submit()
	}
	if !q.begin() {
		return 0, 0
	}
	b := q.filling
	at, room = stagingStart+b.staged, min(n, stagingBytes-b.staged)
	b.staged += (room + 15) / 16 * 16
	return at, room
}

// upload copies bytes to the device. They are the caller's again at once.
func (q *queue) upload(to binding, src []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(src) > 0 {
		at, n := q.stage(len(src))
		if n == 0 {
			return
		}
		copy(q.filling.bytes[at:at+n], src)
		q.record(to.buffer, q.filling.host.buffer, bufferCopy{uint64(at), to.offset, uint64(n)})
		to.offset += uint64(n)
		src = src[n:]
	}
}

// download waits for the device and copies bytes from it. Once the queue has failed
// it leaves dst as it is.
func (q *queue) download(dst []byte, from binding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(dst) > 0 {
		at, n := q.stage(len(dst))
		if n == 0 {
			return
		}
		b := q.filling
		q.record(b.host.buffer, from.buffer, bufferCopy{from.offset, uint64(at), uint64(n)})
		q.wait(b.ticket)
		if q.err != nil {
			return
		}
		copy(dst, b.bytes[at:at+n])
		from.offset += uint64(n)
		dst = dst[n:]
	}
}

// createLayout makes what all shaders share: parameters at binding 0, and after them
// buffers.
func (q *queue) createLayout() error {
	d := q.device
	var bindings [maxBindings + 1]descriptorSetLayoutBinding
	for i := range bindings {
		bindings[i] = descriptorSetLayoutBinding{binding: uint32(i), descriptorType: descriptorStorageBuffer, count: 1, stages: stageCompute}
	}
	bindings[0].descriptorType = descriptorUniformBuffer
	set := &descriptorSetLayoutCreateInfo{chained: chained{structure: typeDescriptorSetLayoutCreateInfo}, count: uint32(len(bindings)), bindings: &bindings[0]}
	if err := check(call(d.createDescriptorSetLayout, d.handle, uintptr(unsafe.Pointer(set)), 0, uintptr(unsafe.Pointer(&q.setLayout)))); err != nil {
		return fmt.Errorf("vkCreateDescriptorSetLayout: %w", err)
	}
	layout := &pipelineLayoutCreateInfo{chained: chained{structure: typePipelineLayoutCreateInfo}, setCount: 1, sets: &q.setLayout}
	if err := check(call(d.createPipelineLayout, d.handle, uintptr(unsafe.Pointer(layout)), 0, uintptr(unsafe.Pointer(&q.layout)))); err != nil {
		return fmt.Errorf("vkCreatePipelineLayout: %w", err)
	}
	const sets = depth * batchDispatches
	sizes := [...]descriptorPoolSize{{descriptorUniformBuffer, sets}, {descriptorStorageBuffer, sets * maxBindings}}
	pool := &descriptorPoolCreateInfo{chained: chained{structure: typeDescriptorPoolCreateInfo}, maxSets: sets, sizeCount: uint32(len(sizes)), sizes: &sizes[0]}
	if err := check(call(d.createDescriptorPool, d.handle, uintptr(unsafe.Pointer(pool)), 0, uintptr(unsafe.Pointer(&q.sets)))); err != nil {
		return fmt.Errorf("vkCreateDescriptorPool: %w", err)
	}
	return nil
}
