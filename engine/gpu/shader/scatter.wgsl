{{- /* Each invocation owns one column of a strip of rows and adds in the order of the
index. What is wrong is noted after the loop: with an atomic operation in it, Mesa 22.3
leaves it after one round. */ -}}
{{template "rows"}}
{{template "main"}}
  let strip = divide(i, p.width);
  let column = i - strip * p.width;
  let height = divide(p.rows + p.strips - 1u, p.strips);
  var wrong = p.picks;
  for (var pick = 0u; pick < p.picks; pick = pick + 1u) {
    let row = index[p.index + pick * p.step];
    if (row < 0 || row >= i32(p.rows)) {
      wrong = min(wrong, pick);
    } else if (divide(u32(row), height) == strip) {
      let at = p.to + u32(row) * p.width + column;
      dst[at] = dst[at] + src[p.from + pick * p.row + column * p.column];
    }
  }
  if (wrong < p.picks) { outside(wrong, index[p.index + wrong * p.step]); }
}
