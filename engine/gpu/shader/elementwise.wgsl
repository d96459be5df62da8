{{template "walk" .}}
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<storage, read_write> first: array<f32>;
{{if eq .Inputs 2}}@group(0) @binding(3) var<storage, read_write> second: array<f32>;{{end}}
{{template "functions" .}}
{{template "main"}}
  let at = locate(i);
  let a = first[at.y];
{{- if eq .Inputs 2}}
  let b = second[at.z];
{{- end}}
  dst[at.x] = {{.Value}};
}
