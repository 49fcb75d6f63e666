package registry

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
)

// MirrorsEnv names mirrors where [Options.Mirrors] does not: "host=[http://]mirror[/prefix],...".
const MirrorsEnv = "INGOT_MIRRORS"

// Mirror is another registry that is asked first for what is read from a host: for host/path, Mirror/Prefix/path.
type Mirror struct {
	Host      string // whose
	Mirror    string // host[:port]
	Prefix    string // of its paths; may be empty
	PlainHTTP bool   // no TLS, as is the rule for this machine's own; Options.PlainHTTP says nothing about mirrors
}

// ParseMirrors reads "host=[http://]mirror[/prefix],..."; mirrors of the same host are asked in this order.
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
			return nil, fmt.Errorf("%q is not host=[http://]mirror[/prefix], such as docker.io=mirror.example.com/hub", clip(item))
		}
		list = append(list, Mirror{Host: host, Mirror: mirror, Prefix: prefix, PlainHTTP: plain})
	}
	return list, nil
}

// mirror is a repository's double on a mirror.
type mirror struct {
	*repository

	mu          sync.Mutex
	tried       map[string]bool
	pausedUntil time.Time // when it may be asked again
}

// How long a mirror that failed is left alone.
const mirrorPause = time.Minute

func (c *Client) mirrorsOf(r *repository) []*mirror {
	var list []*mirror
	for _, m := range c.opts.Mirrors {
		if hostKey(m.Host) != hostKey(r.name) {
			continue
		}
		h, err := c.mirrorHost(m)
		if err != nil {
			c.warn(m.Mirror, err.Error())
			continue
		}
		path := r.path
		if m.Prefix != "" {
			path = m.Prefix + "/" + path
		}
		list = append(list, &mirror{repository: &repository{host: h, path: path, scopes: []string{scope(path, pull)}}, tried: map[string]bool{}})
	}
	return list
}

// hostKey makes Docker Hub's two names one.
func hostKey(host string) string {
	host = strings.ToLower(host)
	if host == "index.docker.io" {
		return "docker.io"
	}
	return host
}

// mirrorHost is host for a registry in the role of a mirror, for which nobody waits. The operator named it, so it may be
// anywhere; how the registry itself is reached, without TLS or without a check of its certificate, says nothing about it.
func (c *Client) mirrorHost(m Mirror) (*host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	scheme := "https"
	if m.PlainHTTP || IsLoopback(m.Mirror) && c.opts.CAFile == "" {
		scheme = "http"
	}
	key := "mirror " + scheme + "://" + m.Mirror
	if h := c.hosts[key]; h != nil {
		return h, nil
	}
	h, err := c.bareHost(m.Mirror, scheme)
	if err == nil {
		h.maxAttempts = 1
		c.hosts[key] = h
	}
	return h, err
}

// fromMirror asks the mirrors for a blob or manifest, each once for the same bytes: what a mirror sent may have been wrong, or have
// broken off. It gives nil where none has it; that a mirror fails is no error.
func (r *repository) fromMirror(req *http.Request) *http.Response {
	if len(r.mirrors) == 0 || req.Method != http.MethodGet && req.Method != http.MethodHead || !r.owns(req.URL) {
		return nil
	}
	what, ok := strings.CutPrefix(req.URL.Path, "/v2/"+r.path+"/")
	if !ok || !strings.HasPrefix(what, "blobs/") && !strings.HasPrefix(what, "manifests/") {
		return nil
	}
	for _, m := range r.mirrors {
		if !m.firstTry(req.Method + " " + what + " " + req.Header.Get("Range")) {
			continue
		}
		there := req.Clone(req.Context())
		there.URL, there.Host = m.url(what), ""
		resp, err := m.follow(there)
		switch {
		case req.Context().Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return nil
		case err == nil && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent):
			return resp
		case err == nil && resp.StatusCode == http.StatusNotFound:
			drain(resp)
			continue
		case err == nil:
			err = statusError(resp)
		}
		m.pause()
		m.c.warn(m.name, fmt.Sprintf("mirror of %s fails: %v", r.name, err))
	}
	return nil
}

// mayAsk reports whether a request may go to the mirror, for the first time.
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
