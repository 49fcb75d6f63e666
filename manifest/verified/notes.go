package verified

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
)

// Notes is a file that lists many files by their digests, a line each: the digest, and a sum of the file's [Stamp] when
// its digest was computed. Lines are appended, and the last one of a digest holds; those that are torn or of another
// form are none. Its methods are safe for concurrent use, also by other processes. A nil Notes has none.
type Notes struct {
	path string

	mu    sync.Mutex
	file  fs.FileInfo // what was read, up to at
	at    int64
	stamp map[string]string // by digest
}

// Noted is a file whose digest was computed.
type Noted struct {
	Digest string      // 64 hex digits
	Info   fs.FileInfo // from before the bytes were read or, of a file that this program wrote, from after that
}

// NewNotes returns the notes in a file, which may not exist.
func NewNotes(path string) *Notes { return &Notes{path: path} }

const (
	digestLen = 2 * sha256.Size
	stampLen  = sha256.Size // hex digits of half a sum
	lineLen   = digestLen + 1 + stampLen + 1
)

func (n Noted) line() string { return n.Digest + " " + n.stamp() + "\n" }

func (n Noted) stamp() string {
	sum := sha256.Sum256([]byte(Stamp(n.Info)))
	return hex.EncodeToString(sum[:stampLen/2])
}

// Has reports whether the digest of a file was computed, and the file has not changed since.
func (n *Notes) Has(f Noted) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read()
	return n.stamp[f.Digest] == f.stamp()
}

// read reads what was appended since the last time, or all of another file. The caller holds the lock.
func (n *Notes) read() {
	info, err := os.Stat(n.path)
	if err != nil || !info.Mode().IsRegular() {
		n.file, n.at, n.stamp = nil, 0, nil
		return
	}
	if n.file == nil || !os.SameFile(n.file, info) || info.Size() < n.at {
		n.at, n.stamp = 0, make(map[string]string, info.Size()/lineLen)
	}
	n.file = info
	if info.Size() == n.at {
		return
	}
	f, err := place.Open(n.path)
	if err != nil {
		return
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, n.at, info.Size()-n.at))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) { // whose parts take no memory of their own
		if line[len(line)-1] != '\n' {
			break // being written
		}
		n.at += int64(len(line))
		if len(line) == lineLen && line[digestLen] == ' ' {
			n.stamp[line[:digestLen]] = line[digestLen+1 : lineLen-1]
		}
	}
}

// Add notes files that were read. One that was written within the last seconds is not noted: a later change may get the
// same time. Without the right to write there are no notes.
func (n *Notes) Add(list ...Noted) {
	n.add(list, func(info fs.FileInfo) bool { return time.Since(changed(info)) >= settled })
}

// AddWritten notes files that this program has just written and hashed, in a folder where nobody else writes. A file
// system that counts whole seconds is no reason to trust what comes after them.
func (n *Notes) AddWritten(list ...Noted) {
	n.add(list, func(info fs.FileInfo) bool {
		return changed(info).Nanosecond() != 0 || time.Since(changed(info)) >= settled
	})
}

func (n *Notes) add(list []Noted, may func(fs.FileInfo) bool) {
	if n == nil {
		return
	}
	var lines []byte
	for _, f := range list {
		if len(f.Digest) == digestLen && may(f.Info) {
			lines = append(lines, f.line()...)
		}
	}
	if len(lines) == 0 {
		return
	}
	f, err := place.OpenFile(n.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(lines)
}

// Keep drops the notes of other digests if they are many. write replaces the file.
func (n *Notes) Keep(live func(digest string) bool, write func(text []byte) error) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read()
	var lines []byte
	for d, stamp := range n.stamp {
		if live(d) {
			lines = fmt.Appendf(lines, "%s %s\n", d, stamp)
		}
	}
	if n.file == nil || n.file.Size() < 2*int64(len(lines))+64*lineLen {
		return nil
	}
	return write(lines)
}
