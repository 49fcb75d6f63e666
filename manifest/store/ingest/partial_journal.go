package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/disk"
)

// journalEvery is how many bytes may be written before the journal records them, and so how many a killed process can
// lose per blob.
const journalEvery = 1 << 20

// rangesJournal lists the ranges of a partial blob that are present, one line "START END" each, in any order. Ranges
// that were written but not yet listed are downloaded again. A line is written after its bytes, but neither is synced:
// after a system crash, lines may list bytes that are not on disk. Verifying the blob's digest detects this.
type rangesJournal struct {
	f        *os.File
	unlisted ranges
	waiting  int64 // total length of unlisted
}

// newRangesJournal atomically replaces the journal.
func newRangesJournal(path string, have ranges) (*rangesJournal, error) {
	if err := writeFile(path+".new", lines(have), 0o644); err != nil {
		return nil, err
	}
	if err := atomicfile.Rename(path+".new", path); err != nil {
		os.Remove(path + ".new")
		return nil, err
	}
	f, err := place.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &rangesJournal{f: f}, nil
}

func (j *rangesJournal) add(r Range) error {
	j.unlisted = j.unlisted.add(r)
	if j.waiting += r.Len(); j.waiting < journalEvery {
		return nil
	}
	return j.flush()
}

func (j *rangesJournal) flush() error {
	_, err := j.f.Write(lines(j.unlisted))
	j.unlisted, j.waiting = nil, 0
	return err
}

func lines(list ranges) []byte {
	var b []byte
	for _, r := range list {
		b = fmt.Appendf(b, "%d %d\n", r.Start, r.End)
	}
	return b
}

func (j *rangesJournal) close() {
	_ = j.flush() // unlisted ranges are downloaded again
	j.f.Close()
}

// readRanges reads a journal. It skips torn and invalid lines.
func readRanges(path string) (ranges, error) {
	b, err := disk.ReadLimited(path, maxJournalSize)
	if errors.Is(err, manifest.ErrTooLarge) {
		return nil, nil // damaged: treat all bytes as missing
	}
	if err != nil {
		return nil, err
	}
	var list ranges
	for line := range bytes.Lines(b) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		start, end, two := bytes.Cut(text, []byte(" "))
		from, err1 := strconv.ParseInt(string(start), 10, 64)
		to, err2 := strconv.ParseInt(string(end), 10, 64)
		if whole && two && err1 == nil && err2 == nil && 0 <= from && from < to {
			list = list.add(Range{from, to})
		}
	}
	return list, nil
}
