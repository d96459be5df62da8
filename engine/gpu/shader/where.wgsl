{{template "walk" .}}
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<storage, read_write> cond: array<u32>;
@group(0) @binding(3) var<storage, read_write> a: array<u32>;
@group(0) @binding(4) var<storage, read_write> b: array<u32>;
{{template "main"}}
  let at = locate(i);
  if ((cond[at.y] & 0x7fffffffu) != 0u) { // neither zero; NaN and the smallest numbers count
    dst[at.x] = a[at.z];
  } else {
    dst[at.x] = b[at.w];
  }
}
