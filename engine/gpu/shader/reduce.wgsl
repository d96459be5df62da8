{{- /* Each invocation folds a part of what one element of the result is folded of:
elements part·chunk to (part+1)·chunk of length, into dst[result·parts + part]. Axes that
are kept come first, then those folded; each kind innermost first. */ -}}
struct Axis { extent: u32, stride: u32, pad0: u32, pad1: u32 }
struct Params {
  count: u32, // results times parts
  parts: u32, chunk: u32, length: u32,
  kept: u32, folded: u32, to: u32, from: u32,
  axes: array<Axis, 12>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<storage, read_write> src: array<f32>;
{{template "divide"}}
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

// walk is how far element i lies after the first along count axes from first on.
fn walk(i: u32, first: u32, count: u32) -> u32 {
  var at = 0u;
  var rest = i;
  for (var axis = first; axis + 1u < first + count; axis = axis + 1u) {
    let outer = divide(rest, p.axes[axis].extent);
    at = at + (rest - outer * p.axes[axis].extent) * p.axes[axis].stride;
    rest = outer;
  }
  return at + rest * p.axes[first + count - 1u].stride;
}

{{template "main"}}
  let result = divide(i, p.parts);
  let begin = (i - result * p.parts) * p.chunk;
  let end = min(begin + p.chunk, p.length);
  let base = p.from + walk(result, 0u, p.kept);
{{- if eq .Fold "sum"}}
  var sum = 0.0;
{{- else}}
  var word = 0xff800000u; // -Inf
  var largest = bitcast<f32>(word);
  var place = 0u;
{{- end}}
  let row = p.axes[p.kept].extent;
  let step = p.axes[p.kept].stride;
  var f = begin;
  while (f < end) { // runs along the innermost axis that is folded
    var at = base + walk(f, p.kept, p.folded);
    let stop = min(end, f - f % row + row);
    while (f < stop) {
      let x = src[at];
{{- if eq .Fold "sum"}}
      sum = sum + x;
{{- else}}
      if (x > largest || (is_nan(x) && !is_nan(largest))) { // the first NaN is the largest
        largest = x;
        place = f;
      }
{{- end}}
      at = at + step;
      f = f + 1u;
    }
  }
{{- if eq .Fold "sum"}}
  dst[p.to + i] = bitcast<u32>(sum);
{{- else if eq .Fold "max"}}
  dst[p.to + i] = bitcast<u32>(largest);
{{- else}}
  dst[p.to + i] = place;
{{- end}}
}
