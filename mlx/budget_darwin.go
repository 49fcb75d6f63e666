package mlx

import "golang.org/x/sys/unix"

// physicalMemory is the machine's memory in bytes; 0 where it is not known.
func physicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
