//go:build !amd64 || noasm

package vec

func exp(dst, x []float32)                           { expPortable(dst, x) }
func tanh(dst, x []float32)                          { tanhPortable(dst, x) }
func sigmoid(dst, x []float32)                       { sigmoidPortable(dst, x) }
func add(dst, a, b []float32)                        { addPortable(dst, a, b) }
func mul(dst, a, b []float32)                        { mulPortable(dst, a, b) }
func sum(x []float32) float32                        { return sumPortable(x) }
func largest(x []float32) float32                    { return maxPortable(x) }
func momentum(p, g, v []float32, keep, rate float32) { momentumPortable(p, g, v, keep, rate) }
func adam(p, g, m, v []float32, s AdamStep)          { adamPortable(p, g, m, v, s) }
func scale(dst, x []float32, factor float32)         { scalePortable(dst, x, factor) }
func affine(dst, x []float32, factor, shift float32) { affinePortable(dst, x, factor, shift) }
func blend(dst, x, y []float32, a, b, c float32)     { blendPortable(dst, x, y, a, b, c) }
func addProduct(dst, x, y []float32)                 { addProductPortable(dst, x, y) }
func rectify(dst, x []float32)                       { rectifyPortable(dst, x) }
func gate(dst, x, y []float32)                       { gatePortable(dst, x, y) }
func dot(x, y []float32, off float32) float32        { return dotPortable(x, y, off) }
func squares(x []float32, off float32) float32       { return squaresPortable(x, off) }
func maxTiles(dst, a, b []float32)                   { maxTilesPortable(dst, a, b) }
func maxTilesGrad(da, db, g, a, b []float32)         { maxTilesGradPortable(da, db, g, a, b) }
