{{- /* How elementwise shaders walk up to four views of one shape. Offsets and strides
are of dst, then of the operands; axes are listed innermost first. */ -}}
{{define "walk"}}
struct Axis { extent: u32, pad0: u32, pad1: u32, pad2: u32, strides: vec4<u32> }
struct Params { count: u32, rank: u32, value: u32, pad: u32, offsets: vec4<u32>, axes: array<Axis, 6> }
@group(0) @binding(0) var<uniform> p: Params;
{{template "divide"}}
// locate returns where element i lies in every view.
fn locate(i: u32) -> vec4<u32> {
{{- if .Flat}}
  return p.offsets + i * p.axes[0].strides;
{{- else}}
  var at = p.offsets;
  var rest = i;
  for (var axis = 0u; axis + 1u < p.rank; axis = axis + 1u) {
    let outer = divide(rest, p.axes[axis].extent);
    at = at + (rest - outer * p.axes[axis].extent) * p.axes[axis].strides;
    rest = outer;
  }
  return at + rest * p.axes[p.rank - 1u].strides;
{{- end}}
}
{{end}}

{{define "divide"}}
// divide is x / d for both below 2^31. Software devices divide integers lane by lane.
fn divide(x: u32, d: u32) -> u32 {
  let n = i32(x);
  let by = i32(d);
  let scale = f32(by);
  var q = i32(f32(n) / scale); // off by a few hundred at most
  q = q + i32(floor(f32(n - q * by) / scale)); // off by one at most
  let rest = n - q * by;
  return u32(select(select(q, q + 1, rest >= by), q - 1, rest < 0));
}
{{end}}

{{define "main"}}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * (groups.x * 64u) + id.x;
  if (i >= p.count) { return; }
{{end}}
