package cmd

import (
	"fmt"
	"os/exec"
)

// portOwner names the process that listens on a port, as far as this user may see it.
func portOwner(port int) string {
	out, err := exec.Command("lsof", "-nP", fmt.Sprintf("-iTCP:%d", port), "-sTCP:LISTEN", "-Fpc").Output()
	if err != nil {
		return ""
	}
	return lsofOwner(string(out))
}
