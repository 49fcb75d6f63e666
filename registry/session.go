package registry

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
)

// uploadNotes keeps notes on unfinished uploads from one run to the next.
type uploadNotes interface {
	// Open opens the note with a key. It fails if another push has it open.
	Open(key digest.Digest) (uploadNote, error)
	// Drop removes the note with a key, unless a push has it open.
	Drop(key digest.Digest)
}

// uploadNote is the note on one upload. It ends with Close, which keeps it, or with Remove.
type uploadNote interface {
	Read() ([]byte, error) // what was last written; nil if nothing was
	Write([]byte) error
	Close()
	Remove()
}

// storedNotes are the notes in a model store.
type storedNotes struct{ s *store.Store }

func (n storedNotes) Open(key digest.Digest) (uploadNote, error) { return ingest.OpenSession(n.s, key) }

func (n storedNotes) Drop(key digest.Digest) { ingest.DropSession(n.s, key) }

// session is the record of an upload session, from which a later run resumes. A nil session keeps no record: a
// later run then starts the upload over.
type session struct {
	note uploadNote
	gone bool // the upload session that is noted is lost
}

// sessionRecord is the JSON form of a session. The offset to resume from comes from the registry; Repository, Offset
// and Time are informational.
type sessionRecord struct {
	URL        string        `json:"url"`      // location of the upload session, without userinfo
	Registry   string        `json:"registry"` // scheme://host that the session was opened with
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Size       int64         `json:"size"`
	Offset     int64         `json:"offset"`
	ChunkMin   int64         `json:"chunk_min,omitempty"`
	Time       time.Time     `json:"time"`
}

func (p *pusher) sessionKey(d digest.Digest) digest.Digest {
	return digest.FromString(p.dst.Host + "\n" + p.r.Path + "\n" + string(d))
}

// session opens the record of a blob's upload. It returns nil if another push of the same blob holds it, or if the
// store is read-only.
func (p *pusher) session(d digest.Digest) *session {
	if p.notes == nil {
		return nil
	}
	note, err := p.notes.Open(p.sessionKey(d))
	if err != nil {
		return nil
	}
	return &session{note: note}
}

// load returns the location and record of an earlier run with the registry of this origin, or a nil location if there
// is nothing usable. A session that was opened with another scheme or at another address is not resumed: its
// location may be one without TLS.
func (s *session) load(origin string) (at *url.URL, n sessionRecord) {
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

// save writes the record. Errors are ignored: a full disk must not fail a push.
func (s *session) save(at *url.URL, n sessionRecord) {
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

// forget makes close remove the record, unless it is saved again.
func (s *session) forget() {
	if s != nil {
		s.gone = true
	}
}

// close keeps the record for a later run.
func (s *session) close() {
	switch {
	case s == nil:
	case s.gone:
		s.note.Remove()
	default:
		s.note.Close()
	}
}

// remove deletes the record of a finished upload.
func (s *session) remove() {
	if s != nil {
		s.note.Remove()
	}
}
