package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"
)

// IngestAge is how long what an unfinished run has made is kept after its last use.
const IngestAge = 14 * 24 * time.Hour

// More than a journal of as many blobs as a manifest can list.
const maxJournalSize = 64 << 20

// readJournal reads the lines of a journal, JSON each. A line that is torn or strange, as after a crash, is left out:
// its blob is made again.
func readJournal(path string) ([]sealed, error) {
	b, err := readLimited(path, maxJournalSize)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []sealed
	for line := range bytes.Lines(b) {
		var l sealed
		if json.Unmarshal(line, &l) == nil && l.Name != "" && validDigest(l.Digest) && l.Size >= 0 {
			out = append(out, l)
		}
	}
	return out, nil
}

// appendJournal adds a line in one write. It starts with a line feed, so that a torn line before it ends there.
func appendJournal(f *os.File, l sealed) error {
	b, err := marshal(l)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append([]byte{'\n'}, b...), '\n'))
	return err
}
