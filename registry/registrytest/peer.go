package registrytest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// Peer is an in-memory registry. It follows the distribution specification (v1.1.1) strictly, except for what a test's
// rules change: see on. It keeps the bytes of interrupted uploads.
type Peer struct {
	T      testing.TB
	Server *httptest.Server

	// Capabilities, set before the first request.
	AnonymousMount bool  // mounts without from
	NoReferrers    bool  // no referrers API; subjects are not processed
	ChunkMin       int64 // OCI-Chunk-Min-Length

	Mu       sync.Mutex
	Allow    func(x *Exchange) bool // returns false after it has responded itself; may be nil
	rules    []*rule
	Repos    map[string]*peerRepo
	Uploads  map[string]*peerUpload
	sessions int // number of sessions opened
	requests []string
	Received int64 // bytes of blobs in all requests
	served   int64 // bytes of blobs in all responses
}

type peerRepo struct {
	Blobs     map[digest.Digest][]byte
	Manifests map[string]PeerManifest // by tag and by digest
}

type PeerManifest struct {
	MediaType string
	Bytes     []byte
}

type peerUpload struct {
	busy  sync.Mutex // serializes requests: an interrupted one is read to its end before the next is handled
	repo  string
	Bytes []byte
	short bool // a chunk was shorter than chunkMin, so it must be the last
}

// Route is the kind of resource that a request is for.
type Route string

const (
	AnyRoute       Route = ""
	PingRoute      Route = "ping"      // /v2/
	ManifestRoute  Route = "manifest"  // ref is a tag or digest
	BlobRoute      Route = "blob"      // ref is a digest
	BeginRoute     Route = "begin"     // POST .../blobs/uploads/
	UploadRoute    Route = "upload"    // ref is the session: GET, PATCH, PUT, DELETE
	ReferrersRoute Route = "referrers" // ref is a digest
	TagsRoute      Route = "tags"
	OtherRoute     Route = "other"
)

// rule replaces a peer's normal response to matching requests.
type rule struct {
	method   string
	route    Route
	ref      string
	do       Action
	skip     int
	left     int // requests left; -1: unlimited
	answered int
}

// Action responds to a request.
type Action func(x *Exchange)

// Exchange is a request to a peer and its response.
type Exchange struct {
	*Peer
	W     http.ResponseWriter
	R     *http.Request
	Route Route
	Repo  string
	Ref   string
	N     int // number of requests that the rule has answered before
}

// New starts a peer on loopback, without TLS. It stops when the test ends.
func New(t testing.TB) *Peer {
	t.Helper()
	p := NewUnstarted(t)
	p.Server.Start()
	return p
}

// NewUnstarted lets a test set server.TLS and the like before it starts the server.
func NewUnstarted(t testing.TB) *Peer {
	p := &Peer{T: t, Repos: map[string]*peerRepo{}, Uploads: map[string]*peerUpload{}}
	p.Server = httptest.NewUnstartedServer(p)
	t.Cleanup(func() {
		p.Server.CloseClientConnections() // those that a test has interrupted or abandoned
		p.Server.Close()
	})
	return p
}

// Host returns the peer's host[:port], as in names.
func (p *Peer) Host() string { return p.Server.Listener.Addr().String() }

// Name returns the name of an image on this peer: path[:tag][@digest].
func (p *Peer) Name(path string) manifest.Name {
	p.T.Helper()
	n, err := manifest.ParseName(p.Host() + "/" + path)
	if err != nil {
		p.T.Fatal(err)
	}
	return n
}

// On makes do respond to requests with this method (empty: any) for this route. Later rules take precedence over
// earlier ones.
func (p *Peer) On(method string, about Route, do Action) *rule {
	r := &rule{method: method, route: about, do: do, left: -1}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.rules = append([]*rule{r}, p.rules...)
	return r
}

// Reset removes all rules. Requests of an abandoned exchange may still be arriving.
func (p *Peer) Reset() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.rules = nil
}

// Once is On for a single request.
func (p *Peer) Once(method string, about Route, do Action) *rule {
	return p.On(method, about, do).Times(1)
}

// Times limits the number of requests that the rule applies to.
func (r *rule) Times(n int) *rule { r.left = n; return r }

// After makes the rule skip the first n matching requests.
func (r *rule) After(n int) *rule { r.skip = n; return r }

// Of limits a rule to one tag, digest or session.
func (r *rule) Of(ref string) *rule { r.ref = ref; return r }

// Respond sends an empty body and these headers: name, value, ...
func Respond(status int, headers ...string) Action {
	return func(x *Exchange) {
		for i := 0; i+1 < len(headers); i += 2 {
			x.W.Header().Set(headers[i], headers[i+1])
		}
		x.W.WriteHeader(status)
	}
}

// RefuseWith responds with an error code of the specification.
func RefuseWith(status int, code string) Action {
	return func(x *Exchange) { x.Fail(status, code) }
}

// Slowly waits before the normal response, unless the client disconnects.
func Slowly(d time.Duration) Action {
	return func(x *Exchange) {
		select {
		case <-time.After(d):
			x.Handle()
		case <-x.R.Context().Done():
		}
	}
}

// Hang neither responds nor reads until the client disconnects. A server does not notice that while a body is unread,
// so hang ends after 2 seconds.
func Hang(x *Exchange) {
	select {
	case <-time.After(2 * time.Second):
	case <-x.R.Context().Done():
	}
	x.cut()
}

// CutRequest reads n bytes of the body and cuts the connection. If keep is set, the bytes count for the upload session.
func CutRequest(n int64, keep bool) Action {
	return func(x *Exchange) {
		b, _ := io.ReadAll(io.LimitReader(x.R.Body, n))
		x.Mu.Lock()
		x.Received += int64(len(b))
		if u := x.Uploads[x.Ref]; u != nil && keep {
			u.Bytes = append(u.Bytes, b...)
		}
		x.Mu.Unlock()
		x.cut()
	}
}

// CutAfter handles the request normally, and cuts the connection instead of responding.
func CutAfter(x *Exchange) {
	x.Record()
	x.cut()
}

// CutResponse sends n bytes of the normal response's body and cuts the connection.
func CutResponse(n int) Action {
	return func(x *Exchange) {
		rec := x.Record()
		body := rec.Body.Bytes()
		x.Replay(rec, body[:min(n, len(body))])
		_ = http.NewResponseController(x.W).Flush()
		x.cut()
	}
}

// alter changes the body of the normal response, but not its headers.
func alter(change func(body []byte) []byte) Action {
	return func(x *Exchange) {
		rec := x.Record()
		x.Replay(rec, change(bytes.Clone(rec.Body.Bytes())))
	}
}

// Flip inverts one bit of the body.
func Flip(at int) Action {
	return alter(func(b []byte) []byte {
		if len(b) > at {
			b[at] ^= 1
		}
		return b
	})
}

// cut closes the connection in the middle of an exchange.
func (x *Exchange) cut() { panic(http.ErrAbortHandler) }

// Record handles the request normally and returns the response instead of sending it.
func (x *Exchange) Record() *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	y := *x
	y.W = rec
	y.Handle()
	return rec
}

// Replay sends a recorded response with another body.
func (x *Exchange) Replay(rec *httptest.ResponseRecorder, body []byte) {
	maps.Copy(x.W.Header(), rec.Header())
	x.W.WriteHeader(rec.Code)
	x.W.Write(body)
}

// Count returns the number of requests so far with this method (empty: any) for this route.
func (p *Peer) Count(method string, about Route) int {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	n := 0
	for _, r := range p.requests {
		if m, rest, _ := strings.Cut(r, " "); (method == "" || m == method) &&
			(about == AnyRoute || strings.HasPrefix(rest, string(about)+" ")) {
			n++
		}
	}
	return n
}

// Log lists the requests so far: METHOD ROUTE URL.
func (p *Peer) Log() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Clone(p.requests)
}

// Traffic returns how many bytes of blobs were received and sent, over all attempts.
func (p *Peer) Traffic() (received, served int64) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.Received, p.served
}

// Blob returns a blob, or nil if it does not exist.
func (p *Peer) Blob(repo string, d digest.Digest) []byte {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.InRepo(repo).Blobs[d]
}

// PutBlob stores a blob and returns its digest.
func (p *Peer) PutBlob(repo string, b []byte) digest.Digest {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	d := digest.FromBytes(b)
	p.InRepo(repo).Blobs[d] = b
	return d
}

// DropBlob removes a blob, as a registry's garbage collection might.
func (p *Peer) DropBlob(repo string, d digest.Digest) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	delete(p.InRepo(repo).Blobs, d)
}

// Manifest returns the manifest of a tag or digest, or nil if it does not exist.
func (p *Peer) Manifest(repo, ref string) []byte {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.InRepo(repo).Manifests[ref].Bytes
}

// PutManifest stores a manifest under its digest, and under a tag unless it is empty.
func (p *Peer) PutManifest(repo, tag, mediaType string, b []byte) digest.Digest {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	d := digest.FromBytes(b)
	for _, ref := range []string{string(d), tag} {
		if ref != "" {
			p.InRepo(repo).Manifests[ref] = PeerManifest{mediaType, b}
		}
	}
	return d
}

// OpenSessions lists the upload sessions that are not closed.
func (p *Peer) OpenSessions() []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Sorted(maps.Keys(p.Uploads))
}

// ForgetUploads drops all open sessions.
func (p *Peer) ForgetUploads() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	clear(p.Uploads)
}

// InRepo returns a repository, creating it if needed. The caller must hold p.mu.
func (p *Peer) InRepo(name string) *peerRepo {
	r := p.Repos[name]
	if r == nil {
		r = &peerRepo{map[digest.Digest][]byte{}, map[string]PeerManifest{}}
		p.Repos[name] = r
	}
	return r
}

func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{Peer: p, W: w, R: r}
	x.Route, x.Repo, x.Ref = routeOf(r)
	p.Mu.Lock()
	p.requests = append(p.requests, fmt.Sprintf("%s %s %s", r.Method, x.Route, r.URL))
	var do Action
	for _, rule := range p.rules {
		if rule.left == 0 || rule.method != "" && rule.method != r.Method ||
			rule.route != AnyRoute && rule.route != x.Route ||
			rule.ref != "" && rule.ref != x.Ref {
			continue
		}
		if rule.skip > 0 {
			rule.skip--
			continue
		}
		x.N, do = rule.answered, rule.do
		rule.answered++
		if rule.left > 0 {
			rule.left--
		}
		break
	}
	allow := p.Allow
	p.Mu.Unlock()
	if allow != nil && !allow(x) {
		return
	}
	if do == nil {
		do = (*Exchange).Handle
	}
	do(x)
}
