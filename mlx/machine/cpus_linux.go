package machine

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// allowedCPUs lists the CPUs that this process may run on.
func allowedCPUs() []int {
	var set unix.CPUSet
	var list []int
	if unix.SchedGetaffinity(0, &set) == nil {
		for i := 0; len(list) < set.Count(); i++ {
			if set.IsSet(i) {
				list = append(list, i)
			}
		}
	}
	if len(list) == 0 { // more CPUs than a set holds
		for i := range runtime.NumCPU() {
			list = append(list, i)
		}
	}
	return list
}
