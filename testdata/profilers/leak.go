// Command leak writes heap profiles of itself while it leaks:
//
//	go run -trimpath leak.go
//
//go:build ignore

package main

import (
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
)

var (
	cache [][]byte // grows: the leak
	table []byte   // made once
)

//go:noinline
func remember(n int) { cache = append(cache, make([]byte, n)) }

//go:noinline
func handle(requests int) {
	for range requests {
		remember(16 << 10)
	}
}

func write(name string, debug int) {
	runtime.GC() // a heap profile is as of the last collection
	f, err := os.Create(name)
	if err != nil {
		log.Fatal(err)
	}
	if err := pprof.Lookup("heap").WriteTo(f, debug); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	runtime.MemProfileRate = 1 // every allocation, so that the figures are exact
	table = make([]byte, 1<<20)
	for handled := range 4 {
		if handled > 0 {
			write(fmt.Sprintf("go_%d.pb.gz", 10*handled), 0)
			write(fmt.Sprintf("go_%d.txt", 10*handled), 1)
		}
		handle(10)
	}
	runtime.KeepAlive(table)
	runtime.KeepAlive(cache)
}
