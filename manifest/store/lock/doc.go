// Package lock excludes the processes that use a model store from each other, and names those that are in the way.
//
// Locks belong to open files (flock): the operating system releases them if the process dies, and goroutines exclude
// each other like processes. [Locks] are the two locks of a store. [Take] and [Drop] are for lock files that their
// holder removes at the end.
package lock
