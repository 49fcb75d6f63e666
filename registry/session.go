package registry

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// session is what the store keeps of an upload. A nil session keeps nothing: then an upload that ends early starts over.
type session struct{ file *manifest.Session }

// sessionNote is its form on disk. The registry's own answer decides where the upload goes on; Offset and the rest are
// for people.
type sessionRecord struct {
	URL        string        `json:"url"`      // where the upload goes on, without user and password
	Registry   string        `json:"registry"` // scheme://host that it was begun with
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Size       int64         `json:"size"`
	Offset     int64         `json:"offset"`
	ChunkMin   int64         `json:"chunk_min,omitempty"`
	Time       time.Time     `json:"time"`
}

// origin is how the registry is reached.
func (r *repository) origin() string { return r.scheme + "://" + r.addr }

func (p *pusher) sessionKey(d digest.Digest) digest.Digest {
	return digest.FromString(p.dst.Host + "\n" + p.r.path + "\n" + string(d))
}

// session opens the note of a blob. It is nil when another push of the same blob has it, or the store cannot be written to.
func (p *pusher) session(d digest.Digest) *session {
	if !p.persistSessions {
		return nil
	}
	note, err := p.s.OpenSession(p.sessionKey(d))
	if err != nil {
		return nil
	}
	return &session{note}
}

// load gives where an earlier run was; nil when it has left nothing of use. An upload that was begun with another scheme, or at
// another address, is not continued: its address may be one without TLS.
func (s *session) load(r *repository) (at *url.URL, n sessionRecord) {
	if s == nil {
		return nil, n
	}
	b, err := s.file.Read()
	if err != nil || json.Unmarshal(b, &n) != nil {
		return nil, n
	}
	at, err = url.Parse(n.URL)
	if err != nil || at.Host == "" || at.Scheme != "https" && (at.Scheme != "http" || r.scheme != "http") || n.Registry != r.origin() {
		return nil, n
	}
	return at, n
}

// save does what it can: a disk that is full does not end a push.
func (s *session) save(at *url.URL, n sessionRecord) {
	if s == nil {
		return
	}
	clean := *at
	clean.User = nil
	n.URL, n.Time = clean.String(), time.Now().UTC()
	if b, err := json.Marshal(n); err == nil {
		_ = s.file.Write(b)
	}
}

// close leaves the note for a later run.
func (s *session) close() {
	if s != nil {
		s.file.Close()
	}
}

// remove is for an upload that is done.
func (s *session) remove() {
	if s != nil {
		s.file.Remove()
	}
}
