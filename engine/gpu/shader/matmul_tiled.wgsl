{{- /* A group of 16 by 16 invocations computes 64 by 64 elements from tiles in shared
memory, 16 terms at a time; each invocation 4 by 4 of them, 16 apart. */ -}}
{{template "product"}}
{{$tile := .Tile}}
var<workgroup> lefts: array<f32, 1088>; // [64 rows][16 terms], rows 17 apart so that banks differ
var<workgroup> rights: array<f32, 1024>; // [16 terms][64 columns]

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
  let row = group.y * 64u;
  let column = group.x * 64u;
  let lane = id.y * 16u + id.x;
  let a = p.a + group.z * p.astep;
  let b = p.b + group.z * p.bstep;
{{- range $i := $tile}}{{range $j := $tile}}
  var c{{$i}}{{$j}} = 0.0;
{{- end}}{{end}}
  for (var first = 0u; first < p.k; first = first + 16u) {
{{- range $tile}}
    {
      let r = lane / 16u + {{.}}u * 16u;
      let k = lane % 16u;
      var x = 0.0;
      if (row + r < p.m && first + k < p.k) { x = left[a + (row + r) * p.arow + (first + k) * p.acolumn]; }
      lefts[r * 17u + k] = x;
    }
    {
      let k = lane / 64u + {{.}}u * 4u;
      let c = lane % 64u;
      var y = 0.0;
      if (column + c < p.n && first + k < p.k) { y = right[b + (first + k) * p.brow + (column + c) * p.bcolumn]; }
      rights[k * 64u + c] = y;
    }
{{- end}}
    workgroupBarrier();
    for (var k = 0u; k < min(16u, p.k - first); k = k + 1u) {
{{- range $tile}}
      let x{{.}} = lefts[(id.y + {{.}}u * 16u) * 17u + k];
      let y{{.}} = rights[k * 64u + id.x + {{.}}u * 16u];
{{- end}}
{{- range $i := $tile}}{{range $j := $tile}}
      c{{$i}}{{$j}} = c{{$i}}{{$j}} + x{{$i}} * y{{$j}};
{{- end}}{{end}}
    }
    workgroupBarrier();
  }
{{- range $i := $tile}}{{range $j := $tile}}
  {
    let r = row + id.y + {{$i}}u * 16u;
    let c = column + id.x + {{$j}}u * 16u;
    if (r < p.m && c < p.n) { dst[p.to + (group.z * p.m + r) * p.n + c] = c{{$i}}{{$j}}; }
  }
{{- end}}{{end}}
}
