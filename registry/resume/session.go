// Package resume notes the sessions of unfinished uploads in a model store, so that a later run goes on with them.
//
// Contract:
//
//   - A note is of one blob in one repository, and belongs to one upload at a time.
//   - A session is resumed only at the address and with the scheme that it was opened with.
//   - Notes only save time: their errors are ignored, and a nil [Session] keeps none.
package resume

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
)

// Session is the note on an upload session. It ends with Close or Remove.
type Session struct {
	note *ingest.Session
	gone bool // the upload session is lost
}

// Note is the JSON form of a session. The offset to resume from comes from the registry; Repository, Offset and Time
// are informational.
type Note struct {
	URL        string        `json:"url"`      // location of the upload session, without userinfo
	Registry   string        `json:"registry"` // scheme://host that the session was opened with
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Size       int64         `json:"size"`
	Offset     int64         `json:"offset"`
	ChunkMin   int64         `json:"chunk_min,omitempty"`
	Time       time.Time     `json:"time"`
}

// Key returns the key of the note on a blob's upload to a repository.
func Key(host, path string, d digest.Digest) digest.Digest {
	return digest.FromString(host + "\n" + path + "\n" + string(d))
}

// Open opens the note with a key. It returns nil if another upload holds it, or without a store.
func Open(s *store.Store, key digest.Digest) *Session {
	if s == nil {
		return nil
	}
	note, err := ingest.OpenSession(s, key)
	if err != nil {
		return nil
	}
	return &Session{note: note}
}

// Drop removes the note with a key, unless an upload has it open.
func Drop(s *store.Store, key digest.Digest) {
	if s != nil {
		ingest.DropSession(s, key)
	}
}

// Load returns the location and note of an earlier run with the registry of this origin, or a nil location if there is
// nothing usable. A session that was opened with another scheme or at another address is not resumed: its location may
// be one without TLS.
func (s *Session) Load(origin string) (at *url.URL, n Note) {
	if s == nil {
		return nil, n
	}
	b, err := s.note.Read()
	if err != nil || json.Unmarshal(b, &n) != nil {
		return nil, n
	}
	at, err = url.Parse(n.URL)
	if err != nil || at.Host == "" || n.Registry != origin ||
		at.Scheme != "https" && (at.Scheme != "http" || !strings.HasPrefix(origin, "http://")) {
		return nil, n
	}
	return at, n
}

// Save writes the note. Errors are ignored: a full disk must not fail a push.
func (s *Session) Save(at *url.URL, n Note) {
	if s == nil {
		return
	}
	clean := *at
	clean.User = nil
	n.URL, n.Time = clean.String(), time.Now().UTC()
	s.gone = false
	if b, err := json.Marshal(n); err == nil {
		_ = s.note.Write(b)
	}
}

// Forget makes Close remove the note, unless it is saved again: the upload session is lost.
func (s *Session) Forget() {
	if s != nil {
		s.gone = true
	}
}

// Close keeps the note for a later run.
func (s *Session) Close() {
	switch {
	case s == nil:
	case s.gone:
		s.note.Remove()
	default:
		s.note.Close()
	}
}

// Remove deletes the note of a finished upload.
func (s *Session) Remove() {
	if s != nil {
		s.note.Remove()
	}
}
