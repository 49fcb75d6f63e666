package ingest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// StrayAge is how long unknown files are ignored, because their writer may be about to rename them.
const StrayAge = time.Hour

// Leftover is what one run keeps in ingest/.
type Leftover struct {
	Kind  leftoverKind
	Name  string    // of the file or folder
	more  []string  // further files of the same blob
	Bytes int64     // total size
	Used  time.Time // last use
}

type leftoverKind int

const (
	leftCreate        leftoverKind = iota // create-HEX, the staging folder of a create; see [Staging]
	leftPush                              // push-HEX, the folder of an upload session; see [Session]
	leftPull                              // pull-HEX, the manifest of a pull; see [Pulling]
	leftPart                              // HEX.part and its companions, a blob of a pull; see [Partial]
	leftUpload                            // upload-HEX, a file uploaded for a create; see [PutUpload]
	LeftUploadFolder                      // files-..., a folder of links to uploads; see [Folder]
	LeftPendingUpload                     // sending-..., an upload in progress and its lock file; see [pendingUpload]
	LeftUse                               // using-HEX-..., the lock file of a process that uses an image; see [Use]
	LeftTemporary                         // a temporary file that cannot be resumed
	leftFile                              // a temporary file for replacing a file in the store's folder
	LeftOther                             // not written by this program
)

// Resumable reports whether the next run resumes from it.
func (l Leftover) Resumable() bool { return l.Kind <= leftUpload }

// Leftovers lists ingest/, sorted by name. It skips entries that disappear while it runs.
func Leftovers(s *store.Store) ([]Leftover, error) {
	entries, err := os.ReadDir(s.Path(store.IngestDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parts := map[string]int{} // index in list, by the blob's hex digits or the upload's name
	var list []Leftover
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l := Leftover{Kind: leftoverKindOf(e), Name: e.Name(), Bytes: info.Size(), Used: info.ModTime()}
		switch l.Kind {
		case leftCreate:
			l.Bytes, l.Used = folderUse(s, e.Name(), ingestJournal)
		case leftPush:
			l.Bytes, l.Used = folderUse(s, e.Name(), "state")
		case leftPart, LeftPendingUpload:
			key := pendingUploadName(e.Name())
			if l.Kind == leftPart {
				key = e.Name()[:64]
			}
			if at, ok := parts[key]; ok {
				first := &list[at]
				first.more = append(first.more, e.Name())
				first.Bytes += l.Bytes
				if l.Used.After(first.Used) {
					first.Used = l.Used
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
		{folderPrefix, false, true, LeftUploadFolder},
		{sendingPrefix, false, false, LeftPendingUpload},
		{usingPrefix, false, false, LeftUse},
		{"." + pullPrefix, false, false, LeftTemporary},
		{store.PartialPrefix, false, false, LeftTemporary},
		{ocispec.ImageIndexFile + "-", false, false, leftFile},
		{ocispec.ImageLayoutFile + "-", false, false, leftFile},
		{store.SecretFile + "-", false, false, leftFile},
		{store.VerifiedFile + "-", false, false, leftFile},
	} {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok && e.IsDir() == k.dir && (!k.hex || isHex(rest)) {
			return k.kind
		}
	}
	if len(name) > 64 && name[64] == '.' && isHex(name[:64]) && !e.IsDir() {
		return leftPart
	}
	return LeftOther
}

// isHex reports whether s is the encoded portion of a SHA-256 digest.
func isHex(s string) bool { return manifest.ValidDigest(digest.NewDigestFromEncoded(digest.SHA256, s)) }

// folderUse returns the total size of the files in a run's folder, and the modification time of the file stamp, or the
// zero time if that does not exist.
func folderUse(s *store.Store, name, stamp string) (bytes int64, used time.Time) {
	entries, err := os.ReadDir(s.Path(store.IngestDir, name))
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

// Stale reports whether a leftover can be removed. The caller holds the store's lock exclusively, so no run is writing
// to it, but for uploads and for pulls, whose blobs are in used; replacements of index.json have a lock of their own.
func Stale(s *store.Store, l Leftover, unfinished bool, used map[digest.Digest]bool) bool {
	age := s.Now().Sub(l.Used)
	if used[l.digest()] {
		return false
	}
	switch l.Kind {
	case LeftTemporary, LeftUploadFolder:
		return true
	case LeftPendingUpload:
		return !IsUploading(s, l)
	case LeftUse:
		return !IsUsed(s, l)
	case leftFile:
		return age > StrayAge
	case leftPart:
		if len(l.more) == 0 && strings.HasSuffix(l.Name, ".lock") {
			return true // of a process that was killed before it wrote a byte
		}
	case LeftOther:
		return false
	}
	return unfinished || age > Age
}

// digest returns that of the manifest of a pull, or of a part's blob; "" for others.
func (l Leftover) digest() digest.Digest {
	switch l.Kind {
	case leftPull:
		return digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(l.Name, pullPrefix))
	case leftPart:
		return digest.NewDigestFromEncoded(digest.SHA256, l.Name[:64])
	}
	return ""
}

// LeftoverBlobs lists the blobs in blobs/ that a resumed run needs.
func LeftoverBlobs(s *store.Store, l Leftover) ([]digest.Digest, error) {
	var list []digest.Digest
	switch l.Kind {
	case leftCreate:
		lines, err := readJournal(s.Path(store.IngestDir, l.Name, ingestJournal))
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			list = append(list, line.Digest)
		}
	case LeftUse:
		d := usedImage(l.Name)
		b, err := disk.ReadLimited(s.Path(store.IngestDir, l.Name), manifest.MaxManifestSize)
		if err == nil && len(b) == 0 {
			b, err = s.ReadBlob(d, manifest.MaxManifestSize)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if errors.Is(err, manifest.ErrBlobMissing) || errors.Is(err, manifest.ErrCorrupt) {
			return nil, nil // its process has come too late, or finds the same
		}
		if err != nil {
			return nil, err
		}
		return withBlobs(d, b), nil
	case leftPull:
		b, err := disk.ReadLimited(s.Path(store.IngestDir, l.Name), manifest.MaxManifestSize)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrTooLarge) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return withBlobs(digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(l.Name, pullPrefix)), b), nil
	}
	return list, nil
}

// withBlobs lists a manifest and the blobs that it refers to. One that was torn by a crash refers to none: the pull
// starts over.
func withBlobs(d digest.Digest, manifestBytes []byte) []digest.Digest {
	list := []digest.Digest{d}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		return list
	}
	for _, b := range blobs {
		list = append(list, b.Digest)
	}
	return list
}

// RemoveLeftover removes all files of a leftover. It ignores errors: the next collection tries again.
func RemoveLeftover(s *store.Store, l Leftover) {
	if l.Kind == leftCreate || l.Kind == leftPush {
		removeIngest(s.Path(store.IngestDir, l.Name))
		return
	}
	if l.Kind == LeftPendingUpload {
		removePendingUpload(s, l)
		return
	}
	if l.Kind == LeftUploadFolder {
		_ = os.RemoveAll(s.Path(store.IngestDir, l.Name)) // contains links only
		return
	}
	for _, name := range slices.Concat(l.more, []string{l.Name}) {
		os.Remove(s.Path(store.IngestDir, name))
	}
}
