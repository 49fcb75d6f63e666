package engine

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// macOSVersion returns the major version that sw_vers prints, such as 15.
func macOSVersion() int {
	version, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		return 0
	}
	major, _, _ := strings.Cut(version, ".")
	v, _ := strconv.Atoi(major)
	return v
}
