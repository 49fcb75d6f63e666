package machine

import (
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Cores returns the number of physical cores that this process may run on, limited by its cgroup's CPU quota.
func Cores() int {
	n := physicalCores(allowedCPUs(), os.ReadFile)
	if q := cpuQuota(os.ReadFile); q > 0 {
		n = min(n, max(1, int(math.Ceil(q))))
	}
	return n
}

// physicalCores counts the physical cores of a list of CPUs; hyperthreads of a core count once.
func physicalCores(cpus []int, read func(string) ([]byte, error)) int {
	cores := map[string]bool{}
	for _, cpu := range cpus {
		b, err := read(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			return len(cpus)
		}
		cores[string(b)] = true
	}
	return len(cores)
}

// cpuQuota returns the lowest CPU quota of this process's cgroup and its ancestors, in CPUs, or 0 if there is none.
func cpuQuota(read func(string) ([]byte, error)) float64 {
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return 0
		}
		return v
	}
	least := 0.0
	for _, d := range cgroups(read, "cpu") {
		var quota, period float64
		if d.v1 {
			q, _ := read(path.Join(d.dir, "cpu.cfs_quota_us"))
			p, _ := read(path.Join(d.dir, "cpu.cfs_period_us"))
			quota, period = number(string(q)), number(string(p))
		} else {
			b, _ := read(path.Join(d.dir, "cpu.max"))
			if f := strings.Fields(string(b)); len(f) == 2 {
				quota, period = number(f[0]), number(f[1]) // "max", which means no limit, parses as 0
			}
		}
		if quota > 0 && period > 0 && (least == 0 || quota/period < least) {
			least = quota / period
		}
	}
	return least
}
