package workload
import ("testing";"github.com/memdiag/memdiag/engine/mem";"github.com/memdiag/memdiag/engine/cpu")
func TestTune(t *testing.T){
 for _, lr := range []float32{0.02,0.05,0.1} { for seed := range int64(4) {
  d := mem.NewDevice(mem.Host(), mem.Options{})
  i,_ := newDetection(Config{Seed:seed,Fixed:true,Device:d,Kernels:cpu.New(0)})
  i.(*detection).descent.Rate=lr
  var l []float64
  for range 100 { m,err := i.Step(); if err!=nil{t.Fatal(err)}; l=append(l,m.Loss)}
  a,b:=0.,0.; for k:=range 10 {a+=l[k]/10;b+=l[90+k]/10}
  t.Logf("lr %v seed %d: %.3f %.3f  %.2f  %.3v", lr, seed, a,b,b/a, []float64{l[0],l[1],l[3],l[7],l[15],l[30],l[60]})
  i.Close(); d.Close()
 }}
}
