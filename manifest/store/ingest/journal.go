package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
)

// Age is how long collections keep the state of an interrupted run after its last use.
const Age = 14 * 24 * time.Hour

// maxJournalSize exceeds the size of a journal with as many blobs as a manifest can list.
const maxJournalSize = 64 << 20

// readJournal reads a journal of JSON lines. It skips torn and invalid lines, as a crash may leave; their blobs are
// made again.
func readJournal(path string) ([]sealed, error) {
	b, err := disk.ReadLimited(path, maxJournalSize)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, manifest.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []sealed
	for line := range bytes.Lines(b) {
		var l sealed
		if json.Unmarshal(line, &l) == nil && l.Name != "" && manifest.ValidDigest(l.Digest) && l.Size >= 0 {
			out = append(out, l)
		}
	}
	return out, nil
}

// appendJournal appends a line in one write. The line begins with a line feed, which terminates a torn line before it.
func appendJournal(f *os.File, l sealed) error {
	b, err := manifest.Marshal(l)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte{'\n'}, b...), '\n'))
	return err
}

// writeFile is os.WriteFile, but waits for no pipe.
func writeFile(path string, b []byte, mode os.FileMode) error {
	f, err := place.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
