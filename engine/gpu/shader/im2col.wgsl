{{template "windows"}}
{{template "main"}}
  var rest = divide(i, p.outw);
  let ox = i - rest * p.outw;
  var next = divide(rest, p.outh);
  let oy = rest - next * p.outh;
  rest = divide(next, p.kernelw);
  let kx = next - rest * p.kernelw;
  next = divide(rest, p.kernelh);
  let ky = rest - next * p.kernelh;
  let image = divide(next, p.channels);
  let channel = next - image * p.channels;
  let y = oy * p.strideh + ky - p.padh; // what hangs over the upper edge wraps, and is past the lower
  let x = ox * p.stridew + kx - p.padw;
  var value = 0.0;
  if (y < p.height && x < p.width) {
    value = src[p.from + image * p.strides.x + channel * p.strides.y + y * p.strides.z + x * p.strides.w];
  }
  dst[p.to + i] = value;
}
