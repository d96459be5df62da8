{{template "rows"}}
{{template "main"}}
  let pick = divide(i, p.width);
  let column = i - pick * p.width;
  let row = index[p.index + pick * p.step];
  if (row < 0 || row >= i32(p.rows)) {
    outside(pick, row);
  } else {
    dst[p.to + i] = src[p.from + u32(row) * p.row + column * p.column];
  }
}
