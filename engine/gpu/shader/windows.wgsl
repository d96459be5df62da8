{{define "windows"}}
struct Params {
  count: u32, channels: u32, height: u32, width: u32,
  kernelh: u32, kernelw: u32, strideh: u32, stridew: u32,
  padh: u32, padw: u32, outh: u32, outw: u32,
  to: u32, from: u32, pad0: u32, pad1: u32,
  strides: vec4<u32>, // of the image, where it is read
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<storage, read_write> src: array<f32>;
{{template "divide"}}
{{end}}
