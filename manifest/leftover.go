package manifest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// strayAge is how long unknown files are ignored, because their writer may be about to rename them.
const strayAge = time.Hour

// leftover is what one run keeps in ingest/.
type leftover struct {
	kind  leftoverKind
	name  string    // of the file or folder
	more  []string  // further files of the same blob
	bytes int64     // total size
	used  time.Time // last use
}

type leftoverKind int

const (
	leftCreate        leftoverKind = iota // create-HEX, the staging folder of a create; see [Ingest]
	leftPush                              // push-HEX, the folder of an upload session; see [Session]
	leftPull                              // pull-HEX, the manifest of a pull; see [Store.Pulling]
	leftPart                              // HEX.part and its companions, a blob of a pull; see [Partial]
	leftUpload                            // upload-HEX, a file uploaded for a create; see [Store.PutUpload]
	leftUploadFolder                      // files-..., a folder of links to uploads; see [Store.Folder]
	leftPendingUpload                     // sending-..., an upload in progress and its lock file; see [pendingUpload]
	leftTemporary                         // a temporary file that cannot be resumed
	leftFile                              // a temporary file for replacing a file in the store's folder
	leftOther                             // not written by this program
)

// resumable reports whether the next run resumes from it.
func (l leftover) resumable() bool { return l.kind <= leftUpload }

// leftovers lists ingest/, sorted by name. It skips entries that disappear while it runs.
func (s *Store) leftovers() ([]leftover, error) {
	entries, err := os.ReadDir(s.path(ingestDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parts := map[string]int{} // index in list, by the blob's hex digits or the upload's name
	var list []leftover
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l := leftover{kind: leftoverKindOf(e), name: e.Name(), bytes: info.Size(), used: info.ModTime()}
		switch l.kind {
		case leftCreate:
			l.bytes, l.used = s.folderUse(e.Name(), ingestJournal)
		case leftPush:
			l.bytes, l.used = s.folderUse(e.Name(), "state")
		case leftPart, leftPendingUpload:
			key := pendingUploadName(e.Name())
			if l.kind == leftPart {
				key = e.Name()[:64]
			}
			if at, ok := parts[key]; ok {
				first := &list[at]
				first.more = append(first.more, e.Name())
				first.bytes += l.bytes
				if l.used.After(first.used) {
					first.used = l.used
				}
				continue
			}
			parts[key] = len(list)
		}
		list = append(list, l)
	}
	return list, nil
}

func leftoverKindOf(e fs.DirEntry) leftoverKind {
	name := e.Name()
	for _, k := range []struct {
		prefix string
		hex    bool // the name continues with the hex digits of a digest only
		dir    bool
		kind   leftoverKind
	}{
		{ingestPrefix, true, true, leftCreate},
		{sessionPrefix, true, true, leftPush},
		{pullPrefix, true, false, leftPull},
		{uploadPrefix, true, false, leftUpload},
		{folderPrefix, false, true, leftUploadFolder},
		{sendingPrefix, false, false, leftPendingUpload},
		{"." + pullPrefix, false, false, leftTemporary},
		{partialPrefix, false, false, leftTemporary},
		{ocispec.ImageIndexFile + "-", false, false, leftFile},
		{ocispec.ImageLayoutFile + "-", false, false, leftFile},
		{secretFile + "-", false, false, leftFile},
	} {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok && e.IsDir() == k.dir && (!k.hex || isHex(rest)) {
			return k.kind
		}
	}
	if len(name) > 64 && name[64] == '.' && isHex(name[:64]) && !e.IsDir() {
		return leftPart
	}
	return leftOther
}

// isHex reports whether s is the encoded portion of a SHA-256 digest.
func isHex(s string) bool { return validDigest(digest.NewDigestFromEncoded(digest.SHA256, s)) }

// folderUse returns the total size of the files in a run's folder, and the modification time of the file stamp, or the
// zero time if that does not exist.
func (s *Store) folderUse(name, stamp string) (bytes int64, used time.Time) {
	entries, err := os.ReadDir(s.path(ingestDir, name))
	if err != nil {
		return 0, used
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		bytes += info.Size()
		if e.Name() == stamp {
			used = info.ModTime()
		}
	}
	return bytes, used
}

// stale reports whether a leftover can be removed. The caller holds the store's lock exclusively, so no run is writing
// to it; replacements of index.json and uploads in progress are protected by their own locks.
func (s *Store) stale(l leftover, unfinished bool) bool {
	age := s.Now().Sub(l.used)
	switch l.kind {
	case leftTemporary, leftUploadFolder:
		return true
	case leftPendingUpload:
		return !s.isUploading(l)
	case leftFile:
		return age > strayAge
	case leftPart:
		if len(l.more) == 0 && strings.HasSuffix(l.name, ".lock") {
			return true // of a process that was killed before it wrote a byte
		}
	case leftOther:
		return false
	}
	return unfinished || age > IngestAge
}

// leftoverBlobs lists the blobs in blobs/ that a resumed run needs.
func (s *Store) leftoverBlobs(l leftover) ([]digest.Digest, error) {
	var list []digest.Digest
	switch l.kind {
	case leftCreate:
		lines, err := readJournal(s.path(ingestDir, l.name, ingestJournal))
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			list = append(list, line.Digest)
		}
	case leftPull:
		b, err := readLimited(s.path(ingestDir, l.name), MaxManifestSize)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTooLarge) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(l.name, pullPrefix)))
		blobs, err := Blobs(b)
		if err != nil {
			return list, nil // torn by a crash: the pull starts over
		}
		for _, d := range blobs {
			list = append(list, d.Digest)
		}
	}
	return list, nil
}

// removeLeftover removes all files of a leftover. It ignores errors: the next collection tries again.
func (s *Store) removeLeftover(l leftover) {
	if l.kind == leftCreate || l.kind == leftPush {
		removeIngest(s.path(ingestDir, l.name))
		return
	}
	if l.kind == leftPendingUpload {
		s.removePendingUpload(l)
		return
	}
	if l.kind == leftUploadFolder {
		_ = os.RemoveAll(s.path(ingestDir, l.name)) // contains links only
		return
	}
	for _, name := range slices.Concat(l.more, []string{l.name}) {
		os.Remove(s.path(ingestDir, name))
	}
}
