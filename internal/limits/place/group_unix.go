//go:build unix

package place

import (
	"io"
	"iter"
	"os"
	"slices"
	"strings"
)

// overflow is the owner that Linux shows for users that a user namespace does not map.
const overflow = 65534

// maxDatabase bounds what is read of the files about users. Those of large sites come over the network instead.
const maxDatabase = 4 << 20

// account is a user and a group by the names that the system knows, with those of directory services; "" = unknown.
type account struct{ user, group string }

// alone reports whether the user is the only member of the group, by their names or numbers: no other one is in its
// list, or has it as first group. Package os/user tells no members.
func (a account) alone(uid, gid, groups, users string) bool {
	name := a.user
	switch {
	case a.user != "" && a.group != "":
		if a.user != a.group {
			return false
		}
	case uid != gid:
		return false
	}
	for fields := range entries(groups) {
		if len(fields) < 4 || fields[2] != gid {
			continue
		}
		for member := range strings.SplitSeq(fields[3], ",") {
			if member != "" && member != name {
				return false
			}
		}
	}
	for fields := range entries(users) {
		if len(fields) > 3 && fields[3] == gid && fields[0] != name {
			return false
		}
	}
	return true
}

// isHiddenRoot reports whether an owner may be root, whom a sandbox without a root of its own does not show.
func isHiddenRoot(uid uint32) bool {
	if uid != overflow {
		return false
	}
	lines := strings.Split(strings.TrimSpace(read("/proc/self/uid_map")), "\n")
	isRoot := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "0 ") }
	return lines[0] != "" && !slices.ContainsFunc(lines, isRoot)
}

// entries yields the fields of the lines of a file such as /etc/passwd.
func entries(text string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.Split(strings.TrimRight(line, "\n"), ":")) {
				return
			}
		}
	}
}

// read returns a small file of the system, or "".
func read(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxDatabase))
	if err != nil {
		return ""
	}
	return string(b)
}
