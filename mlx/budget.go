package mlx

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// DefaultBudget returns the memory that arrays may use, in bytes: the memory of the GPU, or else the lesser of the
// machine's memory and the cgroup's limit, minus a reserve for everything else.
func DefaultBudget(i Info) int64 {
	limit := int64(0)
	if i.GPU {
		for _, key := range []string{"max_recommended_working_set_size", "total_memory", "memory_size"} {
			if limit, _ = strconv.ParseInt(i.Device[key], 10, 64); limit > 0 {
				break
			}
		}
	}
	if limit <= 0 {
		limit = physicalMemory()
		if c := cgroupLimit(os.ReadFile); c > 0 && (limit <= 0 || c < limit) {
			limit = c
		}
	}
	if limit <= 0 {
		return 4 << 30 // unknown: small enough for most machines
	}
	return limit - limit/16 - min(limit/8, 256<<20)
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
