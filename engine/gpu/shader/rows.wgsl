{{define "rows"}}
struct Params {
  count: u32, rows: u32, width: u32, picks: u32, // picks: length of the index
  to: u32, from: u32, index: u32, step: u32, // offsets; the index's stride
  row: u32, column: u32, strips: u32, status: u32, // strides of what is read
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<storage, read_write> src: array<f32>;
@group(0) @binding(3) var<storage, read_write> index: array<i32>;
// Of an index outside its table: that there is one, its place, its value, the rows.
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
{{template "divide"}}
// outside notes an index that is not in the table, the first to come.
fn outside(place: u32, row: i32) {
  let seen = atomicCompareExchangeWeak(&status[p.status], 0u, 1u);
  if (seen.exchanged) {
    atomicStore(&status[p.status + 1u], place);
    atomicStore(&status[p.status + 2u], bitcast<u32>(row));
    atomicStore(&status[p.status + 3u], p.rows);
  }
}
{{end}}
