package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Most bytes that are written before the journal says so: what a kill may lose of a blob.
const journalEvery = 1 << 20

// rangesJournal is the list of the bytes of a partial blob that are there: "START END", a line each, in any order. What was
// written and is not yet listed is fetched again. Lines follow the bytes in time but are not synced: after a crash of the
// machine they may name bytes that are not there, and the blob's digest tells.
type rangesJournal struct {
	f        *os.File
	unlisted ranges
	waiting  int64 // bytes of unlisted
}

// newRangesJournal writes the journal anew, in one step.
func newRangesJournal(path string, have ranges) (*rangesJournal, error) {
	if err := os.WriteFile(path+".new", lines(have), 0o644); err != nil {
		return nil, err
	}
	if err := rename(path+".new", path); err != nil {
		os.Remove(path + ".new")
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644)
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
	_ = j.flush() // what is not listed is fetched again
	j.f.Close()
}

// readRanges reads a journal. A line that is torn or strange is left out.
func readRanges(path string) (ranges, error) {
	b, err := readLimited(path, maxJournalSize)
	if errors.Is(err, ErrTooLarge) {
		return nil, nil // damaged: nothing is there
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
