package mlx

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// DefaultBudget is the memory that arrays may take: of a GPU its own memory, else the machine's or the cgroup's,
// whichever is less, less a share for everything else that lives there.
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
		return 4 << 30 // nothing is known: small enough for most machines
	}
	return limit - limit/16 - min(limit/8, 256<<20)
}

// cgroupLimit is the least memory limit of this process's cgroup and those above it; 0 is none.
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
		v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no number and no limit
		if err == nil && v > 0 && v < 1<<60 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}
