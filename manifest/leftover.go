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

// strayAge is how long a file that nothing knows is left alone: a writer may be about to name it.
const strayAge = time.Hour

// leftover is what one run has in ingest/.
type leftover struct {
	kind  leftoverKind
	name  string    // of the file or folder
	more  []string  // other files of the same blob
	bytes int64     // of all of it
	used  time.Time // when it last changed
}

type leftoverKind int

const (
	leftCreate  leftoverKind = iota // create-HEX, the folder of a create; see [Ingest]
	leftPush                        // push-HEX, the folder of an upload
	leftPull                        // pull-HEX, the manifest of a pull
	leftPart                        // HEX.part and others, a blob of a pull
	leftUpload                      // upload-HEX, a file for a create; see [Store.PutUpload]
	leftFolder                      // files-..., the folder of a create that reads such files
	leftSending                     // sending-..., an upload that a client sends, and its lock file; see [sending]
	leftBegun                       // what its writer had begun and nobody can take up
	leftFile                        // a file of the store's folder that was about to be replaced
	leftOther                       // not ours
)

// resumable reports whether a run that is started again goes on with it.
func (l leftover) resumable() bool { return l.kind <= leftUpload }

// leftovers lists ingest/ by name. What goes away meanwhile is left out.
func (s *Store) leftovers() ([]leftover, error) {
	entries, err := os.ReadDir(s.path(ingestDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parts := map[string]int{} // by the blob's hex digits, or the upload's name
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
		case leftPart, leftSending:
			key := sendingName(e.Name())
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
		hex    bool // the digits of a digest follow, and then nothing
		dir    bool
		kind   leftoverKind
	}{
		{ingestPrefix, true, true, leftCreate},
		{sessionPrefix, true, true, leftPush},
		{pullPrefix, true, false, leftPull},
		{uploadPrefix, true, false, leftUpload},
		{folderPrefix, false, true, leftFolder},
		{sendingPrefix, false, false, leftSending},
		{"." + pullPrefix, false, false, leftBegun},
		{partialPrefix, false, false, leftBegun},
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

// isHex reports whether s is what follows sha256: in a digest.
func isHex(s string) bool { return validDigest(digest.NewDigestFromEncoded(digest.SHA256, s)) }

// folderUse gives the bytes in the folder of a run, and when it was last used: never, where the file that tells it is gone.
func (s *Store) folderUse(name, tells string) (bytes int64, used time.Time) {
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
		if e.Name() == tells {
			used = info.ModTime()
		}
	}
	return bytes, used
}

// stale reports whether nobody will ask for it any more. The caller holds the store's lock alone, so nobody writes it now;
// but index.json changes, and uploads are written, under locks of their own.
func (s *Store) stale(l leftover, unfinished bool) bool {
	age := s.now().Sub(l.used)
	switch l.kind {
	case leftBegun, leftFolder:
		return true
	case leftSending:
		return !s.beingSent(l)
	case leftFile:
		return age > strayAge
	case leftPart:
		if len(l.more) == 0 && strings.HasSuffix(l.name, ".lock") {
			return true // of a process that was killed before it had a byte
		}
	case leftOther:
		return false
	}
	return unfinished || age > IngestAge
}

// leftoverBlobs lists the blobs in blobs/ that a run needs to go on.
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
			return list, nil // torn, as after a crash: the pull begins anew
		}
		for _, d := range blobs {
			list = append(list, d.Digest)
		}
	}
	return list, nil
}

// removeLeftover removes all of it. What does not go now goes with a later collection.
func (s *Store) removeLeftover(l leftover) {
	if l.kind == leftCreate || l.kind == leftPush {
		removeIngest(s.path(ingestDir, l.name))
		return
	}
	if l.kind == leftSending {
		s.dropSending(l)
		return
	}
	if l.kind == leftFolder {
		_ = os.RemoveAll(s.path(ingestDir, l.name)) // links
		return
	}
	for _, name := range slices.Concat(l.more, []string{l.name}) {
		os.Remove(s.path(ingestDir, name))
	}
}
