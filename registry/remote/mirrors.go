package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// MirrorsEnv is the environment variable that lists mirrors if [Options.Mirrors] is nil:
// "host=[http://]mirror[/prefix],...".
const MirrorsEnv = "INGOT_MIRRORS"

// Mirror is a registry that is tried first for reads from a host: host/path is read from Mirror/Prefix/path.
type Mirror struct {
	Host      string // the mirrored registry
	Mirror    string // host[:port]
	Prefix    string // path prefix on the mirror; may be empty
	PlainHTTP bool   // no TLS, as for all loopback mirrors; Options.PlainHTTP does not apply to mirrors
}

// ParseMirrors parses "host=[http://]mirror[/prefix],...". Mirrors of the same host are tried in this order.
func ParseMirrors(s string) ([]Mirror, error) {
	var list []Mirror
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		host, to, ok := strings.Cut(item, "=")
		to, plain := strings.CutPrefix(to, "http://")
		mirror, prefix, deep := strings.Cut(strings.TrimSuffix(to, "/"), "/")
		test := mirror + "/name"
		if deep {
			test = mirror + "/" + prefix + "/name"
		}
		own, err := manifest.ParseName(host + "/name")
		there, err2 := manifest.ParseName(test)
		if !ok || err != nil || err2 != nil || own.IsLocal() || own.Host != host || there.Host != mirror {
			return nil, fmt.Errorf("%q is not host=[http://]mirror[/prefix], such as docker.io=mirror.example.com/hub",
				redact.Clip(item))
		}
		list = append(list, Mirror{Host: host, Mirror: mirror, Prefix: prefix, PlainHTTP: plain})
	}
	return list, nil
}

// mirror is a repository's counterpart on a mirror.
type mirror struct {
	repo *Repository

	mu          sync.Mutex
	tried       map[string]bool // requests that were sent to the mirror
	pausedUntil time.Time
}

// mirrorPause is how long a mirror is skipped after a failure.
const mirrorPause = time.Minute

func (c *Client) mirrorsOf(r *Repository) []*mirror {
	var list []*mirror
	for _, m := range c.opts.Mirrors {
		if address.HostKey(m.Host) != address.HostKey(r.host.name) {
			continue
		}
		h, err := c.mirrorHost(m)
		if err != nil {
			c.warn(m.Mirror, err.Error())
			continue
		}
		path := r.Path
		if m.Prefix != "" {
			path = m.Prefix + "/" + path
		}
		list = append(list, &mirror{repo: &Repository{host: h, Path: path, reads: true, scopes: []string{scope(path, Pull)}},
			tried: map[string]bool{}})
	}
	return list
}

// mirrorHost returns the state of a mirror's host, which gets a single attempt per request. The operator chose it, so
// it may be at any address. The options PlainHTTP and Insecure apply to the registry itself, not to its mirrors.
func (c *Client) mirrorHost(m Mirror) (*host, error) {
	return c.hostOf(fmt.Sprint("mirror ", m.PlainHTTP, " ", m.Mirror), func() (*host, error) {
		h, err := c.bareHost(m.Mirror, "https")
		if err != nil {
			return nil, err
		}
		if h.certificates, err = c.certificatesOf("", m.Mirror, h.addr); err != nil {
			return nil, err
		}
		if m.PlainHTTP || address.IsLoopback(m.Mirror) && c.opts.CAFile == "" && h.certificates == nil {
			h.scheme = "http"
		}
		h.setting.Attempts, h.mirror = 1, true
		return h, nil
	})
}

// fromMirror sends a read of a blob or manifest to the mirrors. Each mirror gets the same request only once, because
// its content may have been wrong or its connection may have broken off. fromMirror returns nil if no mirror has the
// content. Failures of mirrors are warnings.
func (r *Repository) fromMirror(req *http.Request) *http.Response {
	if len(r.mirrors) == 0 || req.Method != http.MethodGet && req.Method != http.MethodHead || !r.host.owns(req.URL) {
		return nil
	}
	what, ok := strings.CutPrefix(req.URL.Path, "/v2/"+r.Path+"/")
	if !ok || !strings.HasPrefix(what, "blobs/") && !strings.HasPrefix(what, "manifests/") {
		return nil
	}
	// A mirror that is silent is left, and not the request: it has a watch of its own.
	defer waiting.Pause(req.Context())()
	for _, m := range r.mirrors {
		if !m.firstTry(req.Method + " " + what + " " + req.Header.Get("Range")) {
			continue
		}
		there := req.Clone(waiting.Without(req.Context()))
		there.URL, there.Host = m.repo.URL(what), ""
		resp, err := m.repo.follow(there)
		switch {
		case req.Context().Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return nil
		case err == nil && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent):
			return resp
		case err == nil && verdict.Of(verdict.GetBlob, resp.StatusCode) == verdict.Absent:
			Drain(resp)
			continue
		case err == nil:
			err = statusError(resp)
		}
		m.pause()
		m.repo.host.c.warn(m.repo.host.name, fmt.Sprintf("mirror of %s failed: %v", r.host.name, err))
	}
	return nil
}

// firstTry reports whether a request may go to the mirror: it is new, and the mirror is not paused.
func (m *mirror) firstTry(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tried[what] || time.Now().Before(m.pausedUntil) {
		return false
	}
	m.tried[what] = true
	return true
}

func (m *mirror) pause() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausedUntil = time.Now().Add(mirrorPause)
}
