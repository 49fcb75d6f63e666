//go:build !linux

package machine

import "runtime"

// allowedCPUs lists the CPUs that this process may run on.
func allowedCPUs() []int {
	list := make([]int, runtime.NumCPU())
	for i := range list {
		list[i] = i
	}
	return list
}
