//go:build !linux

package speed

import "os"

// tempFile returns the path of a new empty file, which lives until done and as long as it is mapped.
func tempFile() (path string, done func(), err error) {
	f, err := os.CreateTemp("", "ingot-speed-")
	if err != nil {
		return "", nil, err
	}
	return f.Name(), func() { _ = os.Remove(f.Name()) }, f.Close()
}
