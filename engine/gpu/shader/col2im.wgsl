{{template "windows"}}
{{template "main"}}
  var rest = divide(i, p.width);
  let x = i - rest * p.width + p.padw;
  let plane = divide(rest, p.height);
  let y = rest - plane * p.height + p.padh;
  var sum = 0.0;
  for (var ky = 0u; ky < p.kernelh; ky = ky + 1u) {
    let oy = divide(y - min(ky, y), p.strideh);
    if (ky <= y && oy * p.strideh + ky == y && oy < p.outh) {
      for (var kx = 0u; kx < p.kernelw; kx = kx + 1u) {
        let ox = divide(x - min(kx, x), p.stridew);
        if (kx <= x && ox * p.stridew + kx == x && ox < p.outw) {
          sum = sum + src[p.from + (((plane * p.kernelh + ky) * p.kernelw + kx) * p.outh + oy) * p.outw + ox];
        }
      }
    }
  }
  dst[p.to + i] = sum;
}
