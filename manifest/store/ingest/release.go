package ingest

import (
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"
)

// Locate returns the file of a sealed blob, in the folder or in the store; "" if it was released.
func (in *Staging) Locate(d digest.Digest) (string, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, path := range []string{in.path(d.Encoded()), in.s.BlobPath(d)} {
		_, err := os.Lstat(path)
		if err == nil {
			return path, nil
		}
		if !os.IsNotExist(err) {
			return "", err
		}
	}
	return "", nil
}

// Released reports whether a blob of this run is only in another place.
func (in *Staging) Released(name string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.sealed[name].Sent != ""
}

// Release records that another place, such as a repository of a registry, has a sealed blob, and removes its file.
// Other names with the same bytes keep none either. The blob stays in Lookup for this run; for later ones it is in
// Sent until Adopt.
func (in *Staging) Release(name, to string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	l, ok := in.sealed[name]
	if !ok || to == "" {
		return fmt.Errorf("release blob %s: it is not complete, or nothing else has it", name)
	}
	l.Sent = to
	if err := appendJournal(in.journal, l); err != nil {
		return fmt.Errorf("release blob %s: %w", name, err)
	}
	in.sealed[name] = l
	for _, other := range in.sealed {
		if other.Digest == l.Digest && other.Sent == "" {
			return nil // released with the last of them
		}
	}
	if err := os.Remove(in.path(l.Digest.Encoded())); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("release blob %s: %w", name, err)
	}
	return nil
}

// Sent returns the blob that an earlier run released to a place under a name.
func (in *Staging) Sent(name, to string) (d digest.Digest, size int64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l, ok := in.sent[name]
	if !ok || l.Sent != to {
		return "", 0, false
	}
	return l.Digest, l.Size, true
}

// Adopt makes a blob that Sent returned a sealed one of this run. The caller has checked that the place still has it.
func (in *Staging) Adopt(name string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l, ok := in.sent[name]; ok {
		in.sealed[name] = l
	}
}

// AddReleased records a blob under a name that was never in the folder as a whole: only another place has it. note is
// as for [StagedBlob.Note].
func (in *Staging) AddReleased(name string, d digest.Digest, size int64, note, to string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	l := sealed{Name: name, Digest: d, Size: size, Note: note, Sent: to}
	if err := appendJournal(in.journal, l); err != nil {
		return fmt.Errorf("release blob %s: %w", name, err)
	}
	in.sealed[name] = l
	return nil
}
