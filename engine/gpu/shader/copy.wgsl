{{template "walk" .}}
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<storage, read_write> src: array<u32>;
{{template "main"}}
  let at = locate(i);
  dst[at.x] = src[at.y];
}
