{{- /* Functions of one or two elements. Drivers may drop NaN and infinities where
Vulkan lets them, so what is to come of those is said here. */ -}}
{{define "functions"}}
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

// bits is a number by its bits; compilers refuse to fold infinities and NaN.
fn bits(b: u32) -> f32 {
  var word = b;
  return bitcast<f32>(word);
}

{{- if eq .Helper "exponential"}}
fn exponential(x: f32) -> f32 {
  let r = select(select(exp(x), bits(0x7f800000u), x > 88.7228), 0.0, x < -103.9721);
  return select(r, x, is_nan(x));
}
{{- end}}

{{- if eq .Helper "logarithm"}}
fn logarithm(x: f32) -> f32 {
  let r = select(log(x), x, x > 3.4028234e38); // infinity
  let low = select(bits(0x7fc00000u), bits(0xff800000u), x == 0.0);
  return select(select(r, low, x <= 0.0), x, is_nan(x));
}
{{- end}}

{{- if eq .Helper "root"}}
fn root(x: f32) -> f32 {
  let r = select(sqrt(x), bits(0x7fc00000u), x < 0.0);
  return select(r, x, is_nan(x) || x == 0.0 || x > 3.4028234e38);
}
{{- end}}

{{- if eq .Helper "tangent"}}
fn tangent(x: f32) -> f32 {
  let m = abs(x);
  let t = exp(-2.0 * min(m, 20.0));
  let large = (1.0 - t) / (1.0 + t);
  let s = x * x;
  let small = m * (1.0 + s * (-0.33333334 + s * (0.13333334 - s * 0.053968254))); // where the difference above loses digits
  let r = select(large, small, m < 0.15);
  return select(select(r, -r, x < 0.0), x, is_nan(x));
}
{{- end}}

{{- if eq .Helper "logistic"}}
fn logistic(x: f32) -> f32 {
  let t = exp(-min(abs(x), 104.0));
  let r = select(1.0 / (1.0 + t), t / (1.0 + t), x < 0.0);
  return select(r, x, is_nan(x));
}
{{- end}}

{{- if eq .Helper "power"}}
// power knows negative bases of whole exponents, which pow does not.
fn power(a: f32, b: f32) -> f32 {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (is_nan(a) || is_nan(b)) { return bits(0x7fc00000u); }
  if (a == 0.0) { return select(bits(0x7f800000u), 0.0, b > 0.0); }
  let r = pow(abs(a), b);
  if (a > 0.0) { return r; }
  if (b != floor(b)) { return bits(0x7fc00000u); }
  return select(r, -r, abs(b) < 16777216.0 && fract(b * 0.5) != 0.0);
}
{{- end}}
{{end}}
