package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// portOwner names the process that listens on a port, if this user may see it.
func portOwner(port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for inode := range listeners(string(b), port) {
			inodes["socket:["+inode+"]"] = true
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !inodes[to] {
			continue
		}
		process := filepath.Dir(filepath.Dir(link))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("process %s (%s)", filepath.Base(process), strings.TrimSpace(string(name)))
	}
	return "another user's process"
}

// listeners returns the inodes of sockets that listen on a port. The table has the format of /proc/net/tcp.
func listeners(table string, port int) map[string]bool {
	const listening = "0A"
	inodes := map[string]bool{}
	for line := range strings.Lines(table) {
		f := strings.Fields(line) // sl local_address rem_address st ... inode
		if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			inodes[f[9]] = true
		}
	}
	return inodes
}
