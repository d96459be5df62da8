{{- /* Eight invocations share a row of a column's places, so that they divide once
for all of it. */ -}}
{{template "windows"}}
{{template "main"}}
  var rest = i / 8u;
  let to = p.to + rest * p.outw;
  var next = divide(rest, p.outh);
  let oy = rest - next * p.outh;
  rest = divide(next, p.kernelw);
  let kx = next - rest * p.kernelw;
  next = divide(rest, p.kernelh);
  let ky = rest - next * p.kernelh;
  let image = divide(next, p.channels);
  let channel = next - image * p.channels;
  let y = oy * p.strideh + ky - p.padh; // what hangs over the upper edge wraps, and is past the lower
  let from = p.from + image * p.strides.x + channel * p.strides.y + y * p.strides.z;
  for (var ox = i % 8u; ox < p.outw; ox = ox + 8u) {
    let x = ox * p.stridew + kx - p.padw;
    var value = 0.0;
    if (y < p.height && x < p.width) { value = src[from + x * p.strides.w]; }
    dst[to + ox] = value;
  }
}
