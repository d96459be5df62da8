{{define "product"}}
struct Params {
  m: u32, n: u32, k: u32, batches: u32,
  to: u32, a: u32, b: u32, pad0: u32, // offsets
  astep: u32, arow: u32, acolumn: u32, pad1: u32, // strides
  bstep: u32, brow: u32, bcolumn: u32, pad2: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<storage, read_write> left: array<f32>;
@group(0) @binding(3) var<storage, read_write> right: array<f32>;
{{end}}
