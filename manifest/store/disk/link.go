package disk

import (
	"io/fs"
	"os"
)

// LinkOver replaces the file at path with a hard link to file, whose info is given. It reports whether it succeeded;
// otherwise path is unchanged.
func LinkOver(file, path string, info fs.FileInfo) bool {
	link := path + "-link"
	if os.Link(file, link) != nil {
		return false
	}
	if got, err := os.Lstat(link); err == nil && os.SameFile(got, info) && os.Rename(link, path) == nil {
		return true
	}
	os.Remove(link) // file is a symbolic link
	return false
}
