package runtest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Memory is what a function allocates, in bytes.
type Memory struct {
	Total int64 // all of it, which bounds Peak
	Peak  int64 // the most at a time, as far as samples show it
	Kept  int64 // what its result holds
}

// Allocated measures a function. Other goroutines must not allocate meanwhile.
func Allocated(f func() any) (m Memory) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that garbage counts little
	before := heap()
	stop, top := make(chan bool), make(chan int64)
	go func() {
		most := inUse()
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
				most = max(most, inUse())
			case <-stop:
				tick.Stop()
				top <- most
				return
			}
		}
	}()
	kept := f()
	stop <- true
	m.Peak = <-top - int64(before.HeapAlloc)
	after := heap()
	m.Total = int64(after.TotalAlloc - before.TotalAlloc)
	m.Kept = int64(after.HeapAlloc) - int64(before.HeapAlloc)
	runtime.KeepAlive(kept)
	return m
}

func heap() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// inUse returns the bytes of objects, without stopping the program.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
