{{- /* Each invocation computes 8 by 8 elements and shares nothing: what a device needs
on which barriers are slow. Its columns lie 8 apart, beside those of its neighbours. */ -}}
{{template "product"}}
{{$tile := .Tile}}
@compute @workgroup_size(8, 4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
  let row = (group.y * 4u + id.y) * 8u;
  let column = group.x * 64u + id.x;
  if (row >= p.m || column >= p.n) { return; }
{{- range $tile}}
  var a{{.}} = p.a + group.z * p.astep + min(row + {{.}}u, p.m - 1u) * p.arow;
  var b{{.}} = p.b + group.z * p.bstep + min(column + {{.}}u * 8u, p.n - 1u) * p.bcolumn;
{{- end}}
{{- range $i := $tile}}{{range $j := $tile}}
  var c{{$i}}{{$j}} = 0.0;
{{- end}}{{end}}
  for (var k = 0u; k < p.k; k = k + 1u) {
{{- range $tile}}
    let x{{.}} = left[a{{.}}];
    let y{{.}} = right[b{{.}}];
    a{{.}} = a{{.}} + p.acolumn;
    b{{.}} = b{{.}} + p.brow;
{{- end}}
{{- range $i := $tile}}{{range $j := $tile}}
    c{{$i}}{{$j}} = c{{$i}}{{$j}} + x{{$i}} * y{{$j}};
{{- end}}{{end}}
  }
  let to = p.to + (group.z * p.m + row) * p.n + column;
{{- range $i := $tile}}
  if (row + {{$i}}u < p.m) {
{{- range $j := $tile}}
    if (column + {{$j}}u * 8u < p.n) { dst[to + {{$i}}u * p.n + {{$j}}u * 8u] = c{{$i}}{{$j}}; }
{{- end}}
  }
{{- end}}
}
