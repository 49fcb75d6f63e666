package machine

import "golang.org/x/sys/unix"

// physicalMemory returns the machine's memory in bytes, or 0 if it is unknown.
func physicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
