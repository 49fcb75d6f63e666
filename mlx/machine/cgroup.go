package machine

import (
	"path"
	"slices"
	"strings"
)

// cgroup is a directory that holds limits for this process.
type cgroup struct {
	dir string
	v1  bool // has version 1's file names
}

// cgroups lists the directories of this process's cgroup and its ancestors for a controller. The formats: version 2 is
// https://docs.kernel.org/admin-guide/cgroup-v2.html, version 1 is https://docs.kernel.org/admin-guide/cgroup-v1/.
func cgroups(read func(string) ([]byte, error), controller string) []cgroup {
	self, err := read("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var list []cgroup
	for _, line := range strings.Split(strings.TrimSpace(string(self)), "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, v1 := "/sys/fs/cgroup", fields[0] != "0"
		if v1 {
			if !slices.Contains(strings.Split(fields[1], ","), controller) {
				continue
			}
			root = path.Join(root, controller)
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			list = append(list, cgroup{path.Join(root, dir), v1})
			if dir == "/" {
				break
			}
		}
	}
	return list
}
