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

// peer is a registry in memory. It follows the distribution specification (v1.1.1) strictly, but for what a test's rules
// say: see on. Uploads that end early keep what came of them.
type peer struct {
	t      testing.TB
	server *httptest.Server

	// What it can do. Set before the first request.
	anonymousMount bool  // mounts without from
	noReferrers    bool  // has no referrers API, and takes no note of subjects
	chunkMin       int64 // OCI-Chunk-Min-Length

	mu       sync.Mutex
	allow    func(x *exchange) bool // answers and gives false when a request may go no further; may be nil
	rules    []*rule
	repos    map[string]*peerRepo
	uploads  map[string]*peerUpload
	made     int // uploads
	requests []string
	received int64 // bytes of blobs, in all requests together
	served   int64 // bytes of blobs, in all answers together
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
	busy  sync.Mutex // one request at a time: what an interrupted one still brings comes before the next one looks
	repo  string
	bytes []byte
	last  bool // a chunk was shorter than chunkMin: it was the last one
}

// route is what a request is about.
type route string

const (
	anyRoute       route = ""
	pingRoute      route = "ping"      // /v2/
	manifestRoute  route = "manifest"  // ref is a tag or digest
	blobRoute      route = "blob"      // ref is a digest
	beginRoute     route = "begin"     // POST .../blobs/uploads/
	uploadRoute    route = "upload"    // ref is the upload: GET, PATCH, PUT, DELETE
	referrersRoute route = "referrers" // ref is a digest
	otherRoute     route = "other"
)

// rule is something that a peer does in its own way.
type rule struct {
	method string
	route  route
	ref    string
	do     action
	skips  int
	left   int // -1: without end
	seen   int
}

// action answers a request.
type action func(x *exchange)

// exchange is a request to a peer and its answer.
type exchange struct {
	*peer
	w     http.ResponseWriter
	r     *http.Request
	route route
	repo  string
	ref   string
	n     int // how many the rule has answered before
}

// newPeer starts a peer on loopback, without TLS; it ends with the test.
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
		p.server.CloseClientConnections() // of those that a test has cut or left
		p.server.Close()
	})
	return p
}

// host is the peer's address as a name has it.
func (p *peer) host() string { return p.server.Listener.Addr().String() }

// name is that of an image on this peer: path[:tag][@digest].
func (p *peer) name(path string) manifest.Name {
	p.t.Helper()
	n, err := manifest.ParseName(p.host() + "/" + path)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// newClient makes a client without credentials that does not wait before it tries again.
func newClient(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Keychain: authn.NewMultiKeychain()}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	if c.net != nil {
		t.Cleanup(c.net.closeIdle)
	}
	return c
}

// on gives requests with this method (empty: any) about this to do, from now on and before rules that were given earlier.
func (p *peer) on(method string, about route, do action) *rule {
	r := &rule{method: method, route: about, do: do, left: -1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append([]*rule{r}, p.rules...)
	return r
}

// once is on for one request.
func (p *peer) once(method string, about route, do action) *rule {
	return p.on(method, about, do).times(1)
}

// times says how many requests the rule is for.
func (r *rule) times(n int) *rule { r.left = n; return r }

// after leaves out so many requests that the rule would be for.
func (r *rule) after(n int) *rule { r.skips = n; return r }

// of limits a rule to one tag, digest or upload.
func (r *rule) of(ref string) *rule { r.ref = ref; return r }

// answer is one with an empty body and these headers: name, value, ...
func respond(status int, headers ...string) action {
	return func(x *exchange) {
		for i := 0; i+1 < len(headers); i += 2 {
			x.w.Header().Set(headers[i], headers[i+1])
		}
		x.w.WriteHeader(status)
	}
}

// refuse answers with one of the specification's error codes.
func refuseWith(status int, code string) action {
	return func(x *exchange) { x.fail(status, code) }
}

// slowly waits, or until the client has gone, and goes on as usual.
func slowly(d time.Duration) action {
	return func(x *exchange) {
		select {
		case <-time.After(d):
			x.handle()
		case <-x.r.Context().Done():
		}
	}
}

// hang answers nothing and reads nothing until the client has gone. A server does not notice that while a body is unread, so
// it ends by itself after a while.
func hang(x *exchange) {
	select {
	case <-time.After(2 * time.Second):
	case <-x.r.Context().Done():
	}
	x.cut()
}

// cutRequest reads so many bytes of the body, keeps them when they belong to an upload and keep is set, and cuts the connection.
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

// cutAfter does as usual and cuts the connection instead of answering.
func cutAfter(x *exchange) {
	x.record()
	x.cut()
}

// cutResponse sends the usual answer up to so many bytes of its body, and cuts the connection.
func cutResponse(n int) action {
	return func(x *exchange) {
		rec := x.record()
		body := rec.Body.Bytes()
		x.replay(rec, body[:min(n, len(body))])
		_ = http.NewResponseController(x.w).Flush()
		x.cut()
	}
}

// alter changes the usual answer's body; the headers stay.
func alter(change func(body []byte) []byte) action {
	return func(x *exchange) {
		rec := x.record()
		x.replay(rec, change(bytes.Clone(rec.Body.Bytes())))
	}
}

// flip alters one bit of the body.
func flip(at int) action {
	return alter(func(b []byte) []byte {
		if len(b) > at {
			b[at] ^= 1
		}
		return b
	})
}

// cut ends the connection in the middle of whatever it does.
func (x *exchange) cut() { panic(http.ErrAbortHandler) }

// record does as usual and gives the answer instead of sending it.
func (x *exchange) record() *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	y := *x
	y.w = rec
	y.handle()
	return rec
}

// replay sends an answer with another body.
func (x *exchange) replay(rec *httptest.ResponseRecorder, body []byte) {
	maps.Copy(x.w.Header(), rec.Header())
	x.w.WriteHeader(rec.Code)
	x.w.Write(body)
}

// count is the number of requests so far that have this method (empty: any) and are about this.
func (p *peer) count(method string, about route) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, r := range p.requests {
		if m, rest, _ := strings.Cut(r, " "); (method == "" || m == method) && (about == anyRoute || strings.HasPrefix(rest, string(about)+" ")) {
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

// traffic is how many bytes of blobs have come and gone, over all attempts.
func (p *peer) traffic() (received, served int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received, p.served
}

// blob gives a blob, nil when it is not there.
func (p *peer) blob(repo string, d digest.Digest) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inRepo(repo).blobs[d]
}

// putBlob puts bytes under their digest.
func (p *peer) putBlob(repo string, b []byte) digest.Digest {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := digest.FromBytes(b)
	p.inRepo(repo).blobs[d] = b
	return d
}

// dropBlob removes a blob, as a registry's collection might.
func (p *peer) dropBlob(repo string, d digest.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inRepo(repo).blobs, d)
}

// manifest gives the manifest of a tag or digest, nil when it is not there.
func (p *peer) manifest(repo, ref string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inRepo(repo).manifests[ref].bytes
}

// putManifest puts a manifest under its digest and, unless it is empty, a tag.
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

// open lists the uploads that have begun and not ended.
func (p *peer) open() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.uploads))
}

// forget drops all unfinished uploads.
func (p *peer) forgetUploads() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.uploads)
}

// inRepo needs the lock.
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
		if rule.left == 0 || rule.method != "" && rule.method != r.Method || rule.route != anyRoute && rule.route != x.route ||
			rule.ref != "" && rule.ref != x.ref {
			continue
		}
		if rule.skips > 0 {
			rule.skips--
			continue
		}
		x.n, do = rule.seen, rule.do
		rule.seen++
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
	}{{"/blobs/uploads/", uploadRoute}, {"/blobs/", blobRoute}, {"/manifests/", manifestRoute}, {"/referrers/", referrersRoute}} {
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

// handle answers as the specification says.
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

// counted counts the bytes of blobs that are served.
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
	x.made++
	id := fmt.Sprint("upload-", x.made)
	x.uploads[id] = &peerUpload{repo: x.repo, bytes: []byte{}}
	x.ref = id
	if x.chunkMin > 0 {
		x.w.Header().Set("OCI-Chunk-Min-Length", strconv.FormatInt(x.chunkMin, 10))
	}
	x.progress(x.uploads[id])
	x.w.WriteHeader(http.StatusAccepted)
}

// progress sets the headers that say how far an upload is. Its Location changes with every chunk. It needs the lock.
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

// takeChunk appends the body to an upload, or answers why not.
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
	if patch && (length <= 0 || u.last) {
		x.mu.Unlock()
		x.fail(http.StatusBadRequest, "SIZE_INVALID")
		return false
	}
	u.last = u.last || patch && length < x.chunkMin
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
			panic(http.ErrAbortHandler) // nobody is there to be answered
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
		if !strings.Contains(ref, ":") || json.Unmarshal(m.bytes, &doc) != nil || doc.Subject == nil || string(doc.Subject.Digest) != x.ref {
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
	slices.SortFunc(idx.Manifests, func(a, b ocispec.Descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	x.w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(x.w).Encode(idx)
}
