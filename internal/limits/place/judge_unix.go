//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

const (
	writableByOthers = 0o002
	writableByGroup  = 0o020
)

// judge is [Trusted] for a file or folder that info describes.
func judge(path string, info fs.FileInfo, owner bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || trusting(path):
		return nil
	case owner && !isTrusted(st.Uid):
		return foreign(path, st.Uid)
	case info.Mode()&writableByOthers != 0 && info.Mode().Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) == 0:
		return open(path, info, "any user")
	case info.Mode()&writableByGroup != 0 && !isPrivate(st.Gid):
		return open(path, info, "the group "+groupName(st.Gid))
	}
	return nil
}

// judgeAbove judges a folder above one that is trusted. A group that shares it is trusted to leave its folders alone.
func judgeAbove(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || trusting(path):
		return nil
	case !isTrusted(st.Uid) && !isHiddenRoot(st.Uid):
		return foreign(path, st.Uid)
	case info.Mode()&writableByOthers != 0 && info.Mode()&fs.ModeSticky == 0:
		return open(path, info, "any user")
	}
	return nil
}

func foreign(path string, uid uint32) error {
	name := strconv.Itoa(int(uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username + " (" + name + ")"
	}
	return untrusted(path, "belongs to user "+name, "use a place of your own")
}

func open(path string, info fs.FileInfo, who string) error {
	what := fmt.Sprintf("has mode %04o, so %s may write to it", info.Mode().Perm(), who)
	return untrusted(path, what, "run `chmod -R go-w` on it or use a place of your own")
}

// isTrusted reports whether an owner could run code as this user anyway.
func isTrusted(uid uint32) bool {
	me := os.Geteuid()
	if int(uid) == me || uid == 0 {
		return true
	}
	if me == 0 && os.Getenv("SUDO_UID") == strconv.Itoa(int(uid)) {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		return false
	}
	info, err := os.Stat(program)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uid
}

// isPrivate reports whether what a group may write is written by trusted users alone: by root's group, which containers
// with arbitrary users have (https://docs.openshift.com/container-platform/latest/openshift_images/create-images.html),
// or a group of this user alone, as of systems whose default umask is 002.
func isPrivate(gid uint32) bool {
	if gid == 0 {
		return true
	}
	uid, id := strconv.Itoa(os.Geteuid()), strconv.Itoa(int(gid))
	var known account
	if u, err := user.LookupId(uid); err == nil {
		known.user = u.Username
	}
	if g, err := user.LookupGroupId(id); err == nil {
		known.group = g.Name
	}
	return known.alone(uid, id, read("/etc/group"), read("/etc/passwd"))
}

func groupName(gid uint32) string {
	id := strconv.Itoa(int(gid))
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}
