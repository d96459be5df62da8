{{- /* One invocation makes the four numbers of a block of Philox4x32-10; see
engine.DrawFloat. */ -}}
struct Params { count: u32, to: u32, first: u32, pad: u32, key: vec2<u32>, stream: vec2<u32> } // count of numbers; first of blocks
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;

// high is the upper half of a product.
fn high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let middle = ah * bl + (low >> 16u);
  let other = al * bh + (middle & 0xffffu);
  return ah * bh + (middle >> 16u) + (other >> 16u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.y * (groups.x * 64u) + id.x;
  if (i * 4u >= p.count) { return; }
  var c = vec4<u32>(p.first + i, 0u, p.stream.x, p.stream.y);
  var k = p.key;
  for (var round = 0u; round < 10u; round = round + 1u) {
    c = vec4<u32>(high(0xCD9E8D57u, c.z) ^ c.y ^ k.x, 0xCD9E8D57u * c.z, high(0xD2511F53u, c.x) ^ c.w ^ k.y, 0xD2511F53u * c.x);
    k = k + vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  let f = vec4<f32>(c >> vec4<u32>(8u)) * (1.0 / 16777216.0);
{{- range .Tile}}
  if (i * 4u + {{.}}u < p.count) { dst[p.to + i * 4u + {{.}}u] = f[{{.}}]; }
{{- end}}
}
