{{template "walk" .}}
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
{{template "main"}}
  let at = locate(i);
  dst[at.x] = p.value;
}
