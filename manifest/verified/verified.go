// Package verified remembers the files whose digests this program has computed, so that one that nobody has changed is
// not hashed again: [Records] those of a hub's cache, whose paths are the user's, [Notes] the blobs of a store.
//
// Contract:
//   - A record or note holds for a file's path, size and times, and its inode and the time of its last change of any
//     kind where the system has them: a file whose bytes were changed is unknown again, even if its time was set back.
//   - A file that was written within the last seconds is not recorded: a later change may get the same time.
//   - They are a convenience: one that is missing, damaged, of another version or in a place that others could have
//     written is none. Processes may share them. A record has a checksum and is written whole; a folder holds at most
//     limits.VerifiedFiles of them. The place of notes is the store's to check.
package verified

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/place"
)

// Records is a folder of records. "" keeps none.
type Records string

// maxRecord is more than a record with the longest name has.
const maxRecord = 8 << 10

// settled is how long ago a file's last change must be: no file system counts time in longer steps.
const settled = 2 * time.Second

// Has reports whether the digest of an open file was computed, and the file has not changed since.
func (r Records) Has(info fs.FileInfo, path, digest string) bool {
	if r == "" {
		return false
	}
	if place.Trusted(string(r), r.place(path)) != nil {
		return false
	}
	have, err := place.ReadFile(r.place(path), maxRecord)
	return err == nil && string(have) == record(info, path, digest)
}

// Add records that a file had a digest when it was as info describes it.
func (r Records) Add(info fs.FileInfo, path, digest string) {
	if r == "" || time.Since(changed(info)) < settled || os.MkdirAll(string(r), 0o700) != nil {
		return
	}
	err := atomicfile.Write(r.place(path), 0o600, func(f *os.File) error {
		_, err := f.WriteString(record(info, path, digest))
		return err
	})
	if err == nil {
		r.prune()
	}
}

// place returns where the record of a path is.
func (r Records) place(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(string(r), hex.EncodeToString(sum[:16]))
}

// record returns the text of a record, which ends with its own checksum.
func record(info fs.FileInfo, path, digest string) string {
	text := fmt.Sprintf("verified 1\n%q\n%s\n%s\n", filepath.Base(path), digest, Stamp(info))
	return fmt.Sprintf("%s%x\n", text, sha256.Sum256([]byte(text)))
}

// Stamp describes a file as it is: two equal stamps of a path mean the same bytes.
func Stamp(info fs.FileInfo) string {
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), system(info))
}

// prune removes the oldest records beyond the limit, and with them what killed processes have left.
func (r Records) prune() {
	entries, err := os.ReadDir(string(r))
	if err != nil || len(entries) <= limits.VerifiedFiles {
		return
	}
	type aged struct {
		name string
		at   time.Time
	}
	var list []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			list = append(list, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	for _, old := range list[min(len(list), limits.VerifiedFiles*3/4):] { // some at a time: each look costs all names
		_ = os.Remove(filepath.Join(string(r), old.name))
	}
}
