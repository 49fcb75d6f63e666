//go:build !windows

package manifest

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some network file systems cannot sync a folder and say EINVAL or ENOTSUP; they keep names by themselves.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

func rename(from, to string) error { return os.Rename(from, to) }

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
