{{template "windows"}}
{{template "main"}}
  var rest = divide(i, p.width);
  let x = i - rest * p.width + p.padw;
  let plane = divide(rest, p.height);
  let y = rest - plane * p.height + p.padh;
  var sum = 0.0;
  // The places that see the element: each a kernel's step further back, one place
  // earlier. Places before the first wrap, and are past the last.
  let lasty = divide(y, p.strideh);
  let lastx = divide(x, p.stridew);
  var oy = lasty;
  for (var ky = y - lasty * p.strideh; ky < p.kernelh; ky = ky + p.strideh) {
    if (oy < p.outh) {
      var ox = lastx;
      for (var kx = x - lastx * p.stridew; kx < p.kernelw; kx = kx + p.stridew) {
        if (ox < p.outw) {
          sum = sum + src[p.from + (((plane * p.kernelh + ky) * p.kernelw + kx) * p.outh + oy) * p.outw + ox];
        }
        ox = ox - 1u;
      }
    }
    oy = oy - 1u;
  }
  dst[p.to + i] = sum;
}
