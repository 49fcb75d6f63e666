package machine

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// Memory returns the lesser of the machine's memory and the cgroup's limit in bytes, or 0 if both are unknown.
func Memory() int64 {
	limit := physicalMemory()
	if c := cgroupLimit(os.ReadFile); c > 0 && (limit <= 0 || c < limit) {
		limit = c
	}
	return max(limit, 0)
}

// cgroupLimit returns the lowest memory limit of this process's cgroup and its ancestors, or 0 if there is none.
func cgroupLimit(read func(string) ([]byte, error)) int64 {
	least := int64(0)
	for _, d := range cgroups(read, "memory") {
		file := "memory.max"
		if d.v1 {
			file = "memory.limit_in_bytes"
		}
		b, err := read(path.Join(d.dir, file))
		if err != nil {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max", which means no limit, does not parse
		if err == nil && v > 0 && v < 1<<60 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}
