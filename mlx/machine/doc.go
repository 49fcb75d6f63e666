// Package machine tells what this process may use of its machine: memory and processors, as its cgroup limits them. It
// also keeps the Go runtime's monitor thread out of the way of kernels.
//
// All functions read the system anew; what cannot be read counts as unlimited. They are safe for concurrent use.
package machine
