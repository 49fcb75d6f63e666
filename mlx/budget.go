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

// cgroupLimit is the least memory limit of this process's cgroup and those above it; 0 is none. Version 2 is described
// in the kernel's admin-guide/cgroup-v2 (memory.max), version 1 in cgroup-v1/memory (memory.limit_in_bytes).
func cgroupLimit(read func(string) ([]byte, error)) int64 {
	self, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(0)
	note := func(file string) {
		b, err := read(file)
		if err != nil {
			return
		}
		v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no number and no limit
		if err == nil && v > 0 && v < 1<<60 && (least == 0 || v < least) {
			least = v
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(string(self)), "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if fields[0] != "0" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			note(path.Join(root, dir, file))
			if dir == "/" {
				break
			}
		}
	}
	return least
}
