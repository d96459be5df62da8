module github.com/memdiag/memdiag/engine/gpu/shader

go 1.26.0

require github.com/gogpu/naga v0.18.0
