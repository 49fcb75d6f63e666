package machine

import "golang.org/x/sys/unix"

// physicalMemory returns the machine's memory in bytes, or 0 if it is unknown.
func physicalMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
