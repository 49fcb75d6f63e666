package mlx

import "golang.org/x/sys/unix"

// physicalMemory is the machine's memory in bytes; 0 where it is not known.
func physicalMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
