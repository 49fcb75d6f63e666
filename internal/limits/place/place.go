// Package place judges whether files and folders that hold code or state can have been written by others, and opens
// files that others may have named without waiting for a pipe.
//
// Contract:
//   - A file or folder is trusted if it belongs to this user, to root, or to the owner of this program, who can run
//     code as this user anyway, and if nobody else may write it. With sudo, it may belong to the user who called it. A
//     group may write if it is root's, as in containers that run under any uid, or has no other member, as with umask
//     002.
//   - INGOT_TRUST lists folders that the user trusts as they are, with all that is in them: for file systems without
//     modes, and for folders that people share.
//   - Links are followed: the judgement is about what is opened.
//   - On Windows everything is trusted: the folders that ingot uses are in the user's profile, whose access list keeps
//     other users out, and a mode says nothing there.
package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// EnvTrust lists folders that the user trusts, separated as in PATH.
const EnvTrust = "INGOT_TRUST"

// ErrUntrusted reports a file or folder that others could have changed.
var ErrUntrusted = errors.New("others could have changed it")

// Trusted returns an [ErrUntrusted] that names the first of the files and folders that others could have changed, and
// what to do. A path that does not exist is an fs.ErrNotExist.
func Trusted(paths ...string) error { return each(paths, true) }

// Guarded is Trusted for what holds no code: root, who acts for every user, may use it whoever owns it, as in a
// container with a mounted folder.
func Guarded(paths ...string) error { return each(paths, os.Geteuid() != 0) }

// GuardedFile is Guarded for an open file. What is not a regular file, such as a pipe, is trusted.
func GuardedFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return judge(f.Name(), info, os.Geteuid() != 0)
}

func each(paths []string, owner bool) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil {
			err = judge(path, info, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TrustedFile is Trusted for an open file.
func TrustedFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return judge(f.Name(), info, true)
}

// TrustedTree is Trusted for a folder that code is loaded from: for all that is in it, and for the folders above it. In
// those, the owner counts, and that not everybody may replace what others have put there.
func TrustedTree(dir string) error {
	if trusting(dir) {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return Trusted(path)
	})
	if err != nil {
		return err
	}
	at, err := filepath.EvalSymlinks(dir)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	for err == nil && filepath.Dir(at) != at {
		at = filepath.Dir(at)
		var info fs.FileInfo
		if info, err = os.Stat(at); err == nil {
			err = judgeAbove(at, info)
		}
	}
	return err
}

// trusting reports whether INGOT_TRUST lists a path, or a folder above it.
func trusting(path string) bool {
	list := filepath.SplitList(os.Getenv(EnvTrust))
	if len(list) == 0 {
		return false
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for _, dir := range list {
		if !filepath.IsAbs(dir) {
			continue // it would mean another folder in each place
		}
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// untrusted makes the error. what is short.
func untrusted(path, what, remedy string) error {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' }) {
		path = fmt.Sprintf("%q", path)
	}
	return fmt.Errorf("%s %s: %w; %s, or add it to %s if you trust them", path, what, ErrUntrusted, remedy, EnvTrust)
}
