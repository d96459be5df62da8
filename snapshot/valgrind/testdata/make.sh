#!/bin/sh
# Makes rust.json: the crate dhat 0.3.3 in a program that keeps 30 vectors of 10,000
# bytes. Needs Rust; the places in its library are those of the version that made it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/rs/src"
cd "$work/rs"

cat >Cargo.toml <<'END'
[package]
name = "leak"
version = "0.1.0"
edition = "2021"

[dependencies]
dhat = "=0.3.3"

[profile.release]
debug = 1
END
cat >src/main.rs <<'END'
#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;
#[inline(never)]
fn remember(kept: &mut Vec<Vec<u8>>) { kept.push(vec![7; 10_000]); }
fn main() {
    let _profiler = dhat::Profiler::new_heap();
    let mut kept = Vec::with_capacity(1000);
    for _ in 0..30 { remember(&mut kept); }
    std::mem::forget(kept); // the profiler goes last, and is to see it
}
END
cargo build --quiet --release
./target/release/leak
cp dhat-heap.json "$here/rust.json"
