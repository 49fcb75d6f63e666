package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// peer is an in-memory registry. It follows the distribution specification (v1.1.1) strictly, except for what a test's
// rules change: see on. It keeps the bytes of interrupted uploads.
type peer struct {
	t      testing.TB
	server *httptest.Server

	// Capabilities, set before the first request.
	anonymousMount bool  // mounts without from
	noReferrers    bool  // no referrers API; subjects are not processed
	chunkMin       int64 // OCI-Chunk-Min-Length

	mu       sync.Mutex
	allow    func(x *exchange) bool // returns false after it has responded itself; may be nil
	rules    []*rule
	repos    map[string]*peerRepo
	uploads  map[string]*peerUpload
	sessions int // number of sessions opened
	requests []string
	received int64 // bytes of blobs in all requests
	served   int64 // bytes of blobs in all responses
}

type peerRepo struct {
	blobs     map[digest.Digest][]byte
	manifests map[string]peerManifest // by tag and by digest
}

type peerManifest struct {
	mediaType string
	bytes     []byte
}

type peerUpload struct {
	busy  sync.Mutex // serializes requests: an interrupted one is read to its end before the next is handled
	repo  string
	bytes []byte
	short bool // a chunk was shorter than chunkMin, so it must be the last
}

// route is the kind of resource that a request is for.
type route string

const (
	anyRoute       route = ""
	pingRoute      route = "ping"      // /v2/
	manifestRoute  route = "manifest"  // ref is a tag or digest
	blobRoute      route = "blob"      // ref is a digest
	beginRoute     route = "begin"     // POST .../blobs/uploads/
	uploadRoute    route = "upload"    // ref is the session: GET, PATCH, PUT, DELETE
	referrersRoute route = "referrers" // ref is a digest
	otherRoute     route = "other"
)

// rule replaces a peer's normal response to matching requests.
type rule struct {
	method   string
	route    route
	ref      string
	do       action
	skip     int
	left     int // requests left; -1: unlimited
	answered int
}

// action responds to a request.
type action func(x *exchange)

// exchange is a request to a peer and its response.
type exchange struct {
	*peer
	w     http.ResponseWriter
	r     *http.Request
	route route
	repo  string
	ref   string
	n     int // number of requests that the rule has answered before
}

// newPeer starts a peer on loopback, without TLS. It stops when the test ends.
func newPeer(t testing.TB) *peer {
	t.Helper()
	p := newUnstartedPeer(t)
	p.server.Start()
	return p
}

// newUnstartedPeer lets a test set server.TLS and the like before it starts the server.
func newUnstartedPeer(t testing.TB) *peer {
	p := &peer{t: t, repos: map[string]*peerRepo{}, uploads: map[string]*peerUpload{}}
	p.server = httptest.NewUnstartedServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections() // those that a test has interrupted or abandoned
		p.server.Close()
	})
	return p
}

// host returns the peer's host[:port], as in names.
func (p *peer) host() string { return p.server.Listener.Addr().String() }

// name returns the name of an image on this peer: path[:tag][@digest].
func (p *peer) name(path string) manifest.Name {
	p.t.Helper()
	n, err := manifest.ParseName(p.host() + "/" + path)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// newClient returns a client without credentials that retries without delays.
func newClient(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Connection: connOptions{Keychain: authn.NewMultiKeychain()}}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.conn.sleep = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	if c.conn.net != nil {
		t.Cleanup(c.conn.net.closeIdle)
	}
	return c
}

// on makes do respond to requests with this method (empty: any) for this route. Later rules take precedence over
// earlier ones.
func (p *peer) on(method string, about route, do action) *rule {
	r := &rule{method: method, route: about, do: do, left: -1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append([]*rule{r}, p.rules...)
	return r
}

// once is on for a single request.
func (p *peer) once(method string, about route, do action) *rule {
	return p.on(method, about, do).times(1)
}

// times limits the number of requests that the rule applies to.
func (r *rule) times(n int) *rule { r.left = n; return r }

// after makes the rule skip the first n matching requests.
func (r *rule) after(n int) *rule { r.skip = n; return r }

// of limits a rule to one tag, digest or session.
func (r *rule) of(ref string) *rule { r.ref = ref; return r }

// respond sends an empty body and these headers: name, value, ...
func respond(status int, headers ...string) action {
	return func(x *exchange) {
		for i := 0; i+1 < len(headers); i += 2 {
			x.w.Header().Set(headers[i], headers[i+1])
		}
		x.w.WriteHeader(status)
	}
}

// refuseWith responds with an error code of the specification.
func refuseWith(status int, code string) action {
	return func(x *exchange) { x.fail(status, code) }
}

// slowly waits before the normal response, unless the client disconnects.
func slowly(d time.Duration) action {
	return func(x *exchange) {
		select {
		case <-time.After(d):
			x.handle()
		case <-x.r.Context().Done():
		}
	}
}

// hang neither responds nor reads until the client disconnects. A server does not notice that while a body is unread,
// so hang ends after 2 seconds.
func hang(x *exchange) {
	select {
	case <-time.After(2 * time.Second):
	case <-x.r.Context().Done():
	}
	x.cut()
}

// cutRequest reads n bytes of the body and cuts the connection. If keep is set, the bytes count for the upload session.
func cutRequest(n int64, keep bool) action {
	return func(x *exchange) {
		b, _ := io.ReadAll(io.LimitReader(x.r.Body, n))
		x.mu.Lock()
		x.received += int64(len(b))
		if u := x.uploads[x.ref]; u != nil && keep {
			u.bytes = append(u.bytes, b...)
		}
		x.mu.Unlock()
		x.cut()
	}
}

// cutAfter handles the request normally, and cuts the connection instead of responding.
func cutAfter(x *exchange) {
	x.record()
	x.cut()
}

// cutResponse sends n bytes of the normal response's body and cuts the connection.
func cutResponse(n int) action {
	return func(x *exchange) {
		rec := x.record()
		body := rec.Body.Bytes()
		x.replay(rec, body[:min(n, len(body))])
		_ = http.NewResponseController(x.w).Flush()
		x.cut()
	}
}

// alter changes the body of the normal response, but not its headers.
func alter(change func(body []byte) []byte) action {
	return func(x *exchange) {
		rec := x.record()
		x.replay(rec, change(bytes.Clone(rec.Body.Bytes())))
	}
}

// flip inverts one bit of the body.
func flip(at int) action {
	return alter(func(b []byte) []byte {
		if len(b) > at {
			b[at] ^= 1
		}
		return b
	})
}

// cut closes the connection in the middle of an exchange.
func (x *exchange) cut() { panic(http.ErrAbortHandler) }

// record handles the request normally and returns the response instead of sending it.
func (x *exchange) record() *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	y := *x
	y.w = rec
	y.handle()
	return rec
}

// replay sends a recorded response with another body.
func (x *exchange) replay(rec *httptest.ResponseRecorder, body []byte) {
	maps.Copy(x.w.Header(), rec.Header())
	x.w.WriteHeader(rec.Code)
	x.w.Write(body)
}

// count returns the number of requests so far with this method (empty: any) for this route.
func (p *peer) count(method string, about route) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, r := range p.requests {
		if m, rest, _ := strings.Cut(r, " "); (method == "" || m == method) &&
			(about == anyRoute || strings.HasPrefix(rest, string(about)+" ")) {
			n++
		}
	}
	return n
}

// log lists the requests so far: METHOD ROUTE URL.
func (p *peer) log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// traffic returns how many bytes of blobs were received and sent, over all attempts.
func (p *peer) traffic() (received, served int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received, p.served
}

// blob returns a blob, or nil if it does not exist.
func (p *peer) blob(repo string, d digest.Digest) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inRepo(repo).blobs[d]
}

// putBlob stores a blob and returns its digest.
func (p *peer) putBlob(repo string, b []byte) digest.Digest {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := digest.FromBytes(b)
	p.inRepo(repo).blobs[d] = b
	return d
}

// dropBlob removes a blob, as a registry's garbage collection might.
func (p *peer) dropBlob(repo string, d digest.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inRepo(repo).blobs, d)
}

// manifest returns the manifest of a tag or digest, or nil if it does not exist.
func (p *peer) manifest(repo, ref string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inRepo(repo).manifests[ref].bytes
}

// putManifest stores a manifest under its digest, and under a tag unless it is empty.
func (p *peer) putManifest(repo, tag, mediaType string, b []byte) digest.Digest {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := digest.FromBytes(b)
	for _, ref := range []string{string(d), tag} {
		if ref != "" {
			p.inRepo(repo).manifests[ref] = peerManifest{mediaType, b}
		}
	}
	return d
}

// openSessions lists the upload sessions that are not closed.
func (p *peer) openSessions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.uploads))
}

// forgetUploads drops all open sessions.
func (p *peer) forgetUploads() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.uploads)
}

// inRepo returns a repository, creating it if needed. The caller must hold p.mu.
func (p *peer) inRepo(name string) *peerRepo {
	r := p.repos[name]
	if r == nil {
		r = &peerRepo{map[digest.Digest][]byte{}, map[string]peerManifest{}}
		p.repos[name] = r
	}
	return r
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{peer: p, w: w, r: r}
	x.route, x.repo, x.ref = routeOf(r)
	p.mu.Lock()
	p.requests = append(p.requests, fmt.Sprintf("%s %s %s", r.Method, x.route, r.URL))
	var do action
	for _, rule := range p.rules {
		if rule.left == 0 || rule.method != "" && rule.method != r.Method ||
			rule.route != anyRoute && rule.route != x.route ||
			rule.ref != "" && rule.ref != x.ref {
			continue
		}
		if rule.skip > 0 {
			rule.skip--
			continue
		}
		x.n, do = rule.answered, rule.do
		rule.answered++
		if rule.left > 0 {
			rule.left--
		}
		break
	}
	allow := p.allow
	p.mu.Unlock()
	if allow != nil && !allow(x) {
		return
	}
	if do == nil {
		do = (*exchange).handle
	}
	do(x)
}

func routeOf(r *http.Request) (about route, repo, ref string) {
	path, ok := strings.CutPrefix(r.URL.Path, "/v2/")
	if !ok {
		return otherRoute, "", ""
	}
	if path == "" {
		return pingRoute, "", ""
	}
	for _, kind := range []struct {
		infix string
		route route
	}{{"/blobs/uploads/", uploadRoute}, {"/blobs/", blobRoute}, {"/manifests/", manifestRoute},
		{"/referrers/", referrersRoute}} {
		if i := strings.LastIndex(path, kind.infix); i > 0 {
			repo, ref = path[:i], path[i+len(kind.infix):]
			if kind.route == uploadRoute && ref == "" {
				return beginRoute, repo, ""
			}
			return kind.route, repo, ref
		}
	}
	return otherRoute, "", ""
}

// handle responds as the specification demands.
func (x *exchange) handle() {
	switch x.route {
	case pingRoute:
		x.w.WriteHeader(http.StatusOK)
	case blobRoute:
		x.handleBlob()
	case beginRoute:
		x.handleBegin()
	case uploadRoute:
		x.handleUpload()
	case manifestRoute:
		x.handleManifest()
	case referrersRoute:
		x.handleReferrers()
	default:
		x.fail(http.StatusNotFound, "NOT_FOUND")
	}
}

func (x *exchange) fail(status int, code string) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	fmt.Fprintf(x.w, `{"errors":[{"code":%q,"message":"said by a test"}]}`, code)
}

func (x *exchange) handleBlob() {
	b := x.blob(x.repo, digest.Digest(x.ref))
	if b == nil {
		x.fail(http.StatusNotFound, "BLOB_UNKNOWN")
		return
	}
	x.w.Header().Set("Content-Type", "application/octet-stream")
	x.w.Header().Set("Docker-Content-Digest", x.ref)
	http.ServeContent(counted{x.w, x.peer}, x.r, "", time.Time{}, bytes.NewReader(b))
}

// counted counts the bytes of blobs that are sent.
type counted struct {
	http.ResponseWriter
	p *peer
}

func (w counted) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.served += int64(n)
	return n, err
}

func (x *exchange) handleBegin() {
	if x.r.Method != http.MethodPost {
		x.fail(http.StatusMethodNotAllowed, "UNSUPPORTED")
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.r.URL.Query()
	if d := digest.Digest(q.Get("mount")); d != "" {
		for name, repo := range x.repos {
			b := repo.blobs[d]
			if from := q.Get("from"); b != nil && (from == name || from == "" && x.anonymousMount) {
				x.inRepo(x.repo).blobs[d] = b
				x.w.Header().Set("Location", "/v2/"+x.repo+"/blobs/"+string(d))
				x.w.WriteHeader(http.StatusCreated)
				return
			}
		}
	}
	x.sessions++
	id := fmt.Sprint("upload-", x.sessions)
	x.uploads[id] = &peerUpload{repo: x.repo, bytes: []byte{}}
	x.ref = id
	if x.chunkMin > 0 {
		x.w.Header().Set("OCI-Chunk-Min-Length", strconv.FormatInt(x.chunkMin, 10))
	}
	x.progress(x.uploads[id])
	x.w.WriteHeader(http.StatusAccepted)
}

// progress sets the Location and Range of an upload session. The Location changes with each chunk. The caller must hold
// x.mu.
func (x *exchange) progress(u *peerUpload) {
	x.w.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%s?state=%d", u.repo, x.ref, len(u.bytes)))
	x.w.Header().Set("Range", fmt.Sprintf("0-%d", max(len(u.bytes)-1, 0)))
}

func (x *exchange) handleUpload() {
	x.mu.Lock()
	u := x.uploads[x.ref]
	x.mu.Unlock()
	if u == nil || u.repo != x.repo {
		x.fail(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN")
		return
	}
	u.busy.Lock()
	defer u.busy.Unlock()
	switch x.r.Method {
	case http.MethodGet:
		x.mu.Lock()
		defer x.mu.Unlock()
		x.progress(u)
		x.w.WriteHeader(http.StatusNoContent)
	case http.MethodDelete:
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.uploads, x.ref)
		x.w.WriteHeader(http.StatusNoContent)
	case http.MethodPatch:
		if x.takeChunk(u, true) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.progress(u)
			x.w.WriteHeader(http.StatusAccepted)
		}
	case http.MethodPut:
		if x.takeChunk(u, false) {
			x.commit(u)
		}
	default:
		x.fail(http.StatusMethodNotAllowed, "UNSUPPORTED")
	}
}

// takeChunk appends the body to an upload, or responds with an error and returns false.
func (x *exchange) takeChunk(u *peerUpload, patch bool) bool {
	x.mu.Lock()
	start, length := len(u.bytes), x.r.ContentLength
	if state := x.r.URL.Query().Get("state"); state != strconv.Itoa(start) {
		x.mu.Unlock()
		x.fail(http.StatusBadRequest, "BLOB_UPLOAD_INVALID")
		return false
	}
	given := x.r.Header.Get("Content-Range")
	if want := fmt.Sprintf("%d-%d", start, int64(start)+length-1); length > 0 && given != want && (patch || given != "") {
		x.progress(u)
		x.mu.Unlock()
		x.fail(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")
		return false
	}
	if patch && (length <= 0 || u.short) {
		x.mu.Unlock()
		x.fail(http.StatusBadRequest, "SIZE_INVALID")
		return false
	}
	u.short = u.short || patch && length < x.chunkMin
	x.mu.Unlock()
	buf := make([]byte, 32<<10)
	for {
		n, err := x.r.Body.Read(buf)
		x.mu.Lock()
		u.bytes = append(u.bytes, buf[:n]...)
		x.received += int64(n)
		x.mu.Unlock()
		if err == io.EOF {
			return true
		}
		if err != nil {
			panic(http.ErrAbortHandler) // nobody to respond to
		}
	}
}

func (x *exchange) commit(u *peerUpload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	want := digest.Digest(x.r.URL.Query().Get("digest"))
	if digest.FromBytes(u.bytes) != want {
		delete(x.uploads, x.ref)
		x.fail(http.StatusBadRequest, "DIGEST_INVALID")
		return
	}
	delete(x.uploads, x.ref)
	x.inRepo(x.repo).blobs[want] = u.bytes
	x.w.Header().Set("Location", "/v2/"+x.repo+"/blobs/"+string(want))
	x.w.Header().Set("Docker-Content-Digest", string(want))
	x.w.WriteHeader(http.StatusCreated)
}

func (x *exchange) handleManifest() {
	if x.r.Method == http.MethodPut {
		x.putPushed()
		return
	}
	x.mu.Lock()
	m, ok := x.inRepo(x.repo).manifests[x.ref]
	x.mu.Unlock()
	if !ok {
		x.fail(http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	x.w.Header().Set("Content-Type", m.mediaType)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(m.bytes)))
	x.w.Header().Set("Docker-Content-Digest", string(digest.FromBytes(m.bytes)))
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method == http.MethodGet {
		x.w.Write(m.bytes)
	}
}

func (x *exchange) putPushed() {
	b, err := io.ReadAll(x.r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var doc ocispec.Manifest
	blobs, err := manifest.Blobs(b)
	if err != nil || json.Unmarshal(b, &doc) != nil {
		x.fail(http.StatusBadRequest, "MANIFEST_INVALID")
		return
	}
	for _, d := range blobs {
		if x.blob(x.repo, d.Digest) == nil {
			x.fail(http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN")
			return
		}
	}
	tag := x.ref
	if strings.Contains(tag, ":") {
		tag = ""
	}
	d := x.putManifest(x.repo, tag, x.r.Header.Get("Content-Type"), b)
	if doc.Subject != nil && !x.noReferrers {
		x.w.Header().Set("OCI-Subject", string(doc.Subject.Digest))
	}
	x.w.Header().Set("Location", "/v2/"+x.repo+"/manifests/"+string(d))
	x.w.Header().Set("Docker-Content-Digest", string(d))
	x.w.WriteHeader(http.StatusCreated)
}

func (x *exchange) handleReferrers() {
	if x.noReferrers {
		x.fail(http.StatusNotFound, "NOT_FOUND")
		return
	}
	idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	idx.SchemaVersion = 2
	x.mu.Lock()
	for ref, m := range x.inRepo(x.repo).manifests {
		var doc ocispec.Manifest
		if !strings.Contains(ref, ":") || json.Unmarshal(m.bytes, &doc) != nil || doc.Subject == nil ||
			string(doc.Subject.Digest) != x.ref {
			continue
		}
		kind := doc.ArtifactType
		if kind == "" {
			kind = doc.Config.MediaType
		}
		idx.Manifests = append(idx.Manifests, ocispec.Descriptor{MediaType: m.mediaType, ArtifactType: kind,
			Digest: digest.Digest(ref), Size: int64(len(m.bytes)), Annotations: doc.Annotations})
	}
	x.mu.Unlock()
	if want := x.r.URL.Query().Get("artifactType"); want != "" {
		idx.Manifests = slices.DeleteFunc(idx.Manifests, func(d ocispec.Descriptor) bool { return d.ArtifactType != want })
		x.w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	slices.SortFunc(idx.Manifests,
		func(a, b ocispec.Descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	x.w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(x.w).Encode(idx)
}
