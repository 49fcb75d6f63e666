// Package resume keeps the session records of unfinished uploads in a model store, so that a later run resumes them.
//
// Contract:
//
//   - A record is of one blob in one repository, and belongs to one upload at a time.
//   - A session is resumed only at the address and with the scheme that it was opened with.
//   - Records only save time: their errors are ignored, and a nil [Session] keeps none.
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

// Session is the record of an upload session. It ends with Close or Remove.
type Session struct {
	file *ingest.Session
	lost bool // the upload session is
}

// Record is the JSON form of a session. The offset to resume from comes from the registry; Repository, Offset and Time
// are informational.
type Record struct {
	URL        string        `json:"url"`      // location of the upload session, without userinfo
	Registry   string        `json:"registry"` // scheme://host that the session was opened with
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Size       int64         `json:"size"`
	Offset     int64         `json:"offset"`
	ChunkMin   int64         `json:"chunk_min,omitempty"`
	Time       time.Time     `json:"time"`
}

// Key returns the key of the record of a blob's upload to a repository.
func Key(host, path string, d digest.Digest) digest.Digest {
	return digest.FromString(host + "\n" + path + "\n" + string(d))
}

// Open opens the record with a key. It returns nil if another upload holds it, or without a store.
func Open(s *store.Store, key digest.Digest) *Session {
	if s == nil {
		return nil
	}
	file, err := ingest.OpenSession(s, key)
	if err != nil {
		return nil
	}
	return &Session{file: file}
}

// Drop removes the record with a key, unless an upload has it open.
func Drop(s *store.Store, key digest.Digest) {
	if s != nil {
		ingest.DropSession(s, key)
	}
}

// Load returns the location and record of an earlier run with the registry of this origin, or a nil location if there
// is nothing usable. A session that was opened with another scheme or at another address is not resumed: its location
// may be one without TLS.
func (s *Session) Load(origin string) (at *url.URL, r Record) {
	if s == nil {
		return nil, r
	}
	b, err := s.file.Read()
	if err != nil || json.Unmarshal(b, &r) != nil {
		return nil, r
	}
	at, err = url.Parse(r.URL)
	if err != nil || at.Host == "" || r.Registry != origin ||
		at.Scheme != "https" && (at.Scheme != "http" || !strings.HasPrefix(origin, "http://")) {
		return nil, r
	}
	return at, r
}

// Save writes the record. Errors are ignored: a full disk must not fail a push.
func (s *Session) Save(at *url.URL, r Record) {
	if s == nil {
		return
	}
	clean := *at
	clean.User = nil
	r.URL, r.Time = clean.String(), time.Now().UTC()
	s.lost = false
	if b, err := json.Marshal(r); err == nil {
		_ = s.file.Write(b)
	}
}

// Forget makes Close remove the record, unless it is saved again: the upload session is lost.
func (s *Session) Forget() {
	if s != nil {
		s.lost = true
	}
}

// Close keeps the record for a later run.
func (s *Session) Close() {
	switch {
	case s == nil:
	case s.lost:
		s.file.Remove()
	default:
		s.file.Close()
	}
}

// Remove deletes the record of a finished upload.
func (s *Session) Remove() {
	if s != nil {
		s.file.Remove()
	}
}
