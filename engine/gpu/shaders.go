package gpu

import (
	"embed"
	"fmt"
	"unsafe"
)

//go:generate go -C shader run . ../spirv

// compiled are the shaders, by name: what the generator made of those in shader.
//
//go:embed spirv/*.spv
var compiled embed.FS

// pipeline returns a shader made ready for the device, which takes milliseconds the
// first time. The queue's lock is held.
func (q *queue) pipeline(shader string) (handle, error) {
	if p, ok := q.pipelines[shader]; ok {
		return p, nil
	}
	code, err := compiled.ReadFile("spirv/" + shader + ".spv")
	if err != nil {
		return 0, fmt.Errorf("shader %s: %w", shader, err)
	}
	d := q.device
	words := make([]uint32, len(code)/4) // aligned, which the file's bytes need not be
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(code)), code)
	info := &shaderModuleCreateInfo{chained: chained{structure: typeShaderModuleCreateInfo}, size: uint64(len(code)), code: &words[0]}
	var module handle
	if err := check(call(d.createShaderModule, d.handle, uintptr(unsafe.Pointer(info)), 0, uintptr(unsafe.Pointer(&module)))); err != nil {
		return 0, lost(fmt.Errorf("shader %s: vkCreateShaderModule: %w", shader, err))
	}
	defer call(d.destroyShaderModule, d.handle, module, 0)
	create := &computePipelineCreateInfo{
		chained: chained{structure: typeComputePipelineCreateInfo}, layout: q.layout,
		stage: pipelineShaderStageCreateInfo{
			chained: chained{structure: typePipelineShaderStageCreateInfo}, stage: stageCompute, module: module, entry: cstring("main"),
		},
	}
	var p handle
	if err := check(call(d.createComputePipelines, d.handle, 0, 1, uintptr(unsafe.Pointer(create)), 0, uintptr(unsafe.Pointer(&p)))); err != nil {
		return 0, lost(fmt.Errorf("shader %s: vkCreateComputePipelines: %w", shader, err))
	}
	q.pipelines[shader] = p
	return p, nil
}
