package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/opencontainers/go-digest"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// total returns the size of all blobs of a model.
func total(t testing.TB, s *store.Store, name manifest.Name) (sum int64) {
	t.Helper()
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := manifest.Blobs(raw.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		sum += b.Size
	}
	return sum
}

// leftovers lists the files that unfinished transfers left in a store.
func leftovers(t testing.TB, s *store.Store) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Root(), "ingest"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPush(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, want := putModel(t, s, "m", 0, 1, 3000, 40*1000, 3*mib, 100)
	c := newClient(t)
	opts := PushOptions{ChunkSize: mib}
	got, err := c.Push(t.Context(), s, name, p.name("deep/path/to/m:v1"), opts)
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s", got, err, want)
	}
	p.check("deep/path/to/m", "v1", want)
	if n := p.count("PATCH", uploadRoute); n != 3 {
		t.Errorf("%d chunks for a blob of three chunks", n)
	}
	received, _ := p.traffic()
	if sum := total(t, s, name); received != sum {
		t.Errorf("%d bytes were sent of %d", received, sum)
	}
	if left := append(p.openSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	asked := len(p.log())
	if got, err := c.Push(t.Context(), s, name, p.name("deep/path/to/m:v1"), opts); err != nil || got != want {
		t.Errorf("again: %s, %v", got, err)
	}
	if n := len(p.log()) - asked; n != 1 {
		t.Errorf("%d requests where the registry has the model, want 1: %q", n, p.log()[asked:])
	}
	if got, err := c.Push(t.Context(), s, name, p.name("deep/path/to/m:v2"), opts); err != nil || got != want {
		t.Errorf("another tag: %s, %v", got, err)
	}
	p.check("deep/path/to/m", "v2", want)
	if again, _ := p.traffic(); again != received {
		t.Errorf("another tag sent %d bytes", again-received)
	}
}

func TestPushByDigest(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, want := putModel(t, s, "m", 10)
	other := digest.FromString("other")
	_, err := newClient(t).Push(t.Context(), s, name, p.name("m@"+string(other)), PushOptions{})
	if !errors.Is(err, ErrDigest) {
		t.Errorf("a name with another digest: %v", err)
	}
	got, err := newClient(t).Push(t.Context(), s, name, p.name("m@"+string(want)), PushOptions{})
	if err != nil || got != want {
		t.Errorf("its own digest: %s, %v", got, err)
	}
	p.check("m", string(want), want)
}

func TestPushRefusals(t *testing.T) {
	s := newStore(t)
	name, _ := putModel(t, s, "m", 10)
	local := name
	local.Path = "elsewhere"
	if _, err := newClient(t).Push(t.Context(), s, name, local, PushOptions{}); !errors.Is(err, ErrNoHost) {
		t.Errorf("a local name: %v", err)
	}
	p := newPeer(t)
	_, err := newClient(t).Push(t.Context(), s, local, p.name("m"), PushOptions{})
	if !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("no such model: %v", err)
	}
}

// fault is a faulty registry, and the expected result of a push to it.
type fault struct {
	name         string
	sizes        []int // of tensors; nil: one of three chunks and 500 bytes, and two small ones
	chunk        int64 // chunk size; 0: 64 KiB
	set          func(t *testing.T, p *peer)
	stall        time.Duration
	want         error  // the expected error; nil and no text: success
	text         string // expected part of the error's text
	maxResent    int64  // maximum bytes sent again; 0: one chunk, negative: any number
	mayLeaveOpen bool   // sessions may stay open at the registry
	check        func(t *testing.T, p *peer, waits []time.Duration)
}

var faults = []fault{
	{name: "416 with the offset", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, keepHalf(http.StatusRequestedRangeNotSatisfiable)).after(1)
	}},
	{name: "416 without an offset", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, refuseWith(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")).after(1)
	}},
	{name: "416 always", mayLeaveOpen: true, text: "416", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, refuseWith(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")).after(1)
	}},
	{name: "201 after the first chunk", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, withStatus(http.StatusCreated))
	}},
	{name: "201 after each chunk, without a Location", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, func(x *exchange) {
			rec := x.record()
			rec.Header().Del("Location")
			rec.Code = http.StatusCreated
			x.replay(rec, nil)
		})
	}},
	{name: "201 and a blob after the last chunk", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, func(x *exchange) {
			rec := x.record()
			x.mu.Lock()
			if u := x.uploads[x.ref]; u != nil && len(u.bytes) == 3*64*kib+500 {
				d := digest.FromBytes(u.bytes)
				x.inRepo(x.repo).blobs[d] = u.bytes
				delete(x.uploads, x.ref)
				rec.Code = http.StatusCreated
				rec.Header().Set("Location", "/v2/"+x.repo+"/blobs/"+string(d))
			}
			x.mu.Unlock()
			x.replay(rec, nil)
		})
	}},
	{name: "the session is lost", maxResent: -1, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, func(x *exchange) { x.forgetUploads(); x.handle() }).after(2)
	}},
	{name: "the session is gone", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, respond(http.StatusGone)).after(1)
	}},
	{name: "the session is lost, as in olareg", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, refuseWith(http.StatusBadRequest, "BLOB_UPLOAD_UNKNOWN")).after(1)
	}},
	{name: "sessions are always lost", maxResent: -1, mayLeaveOpen: true, want: ErrNotFound,
		set: func(_ *testing.T, p *peer) {
			p.on("PATCH", uploadRoute, refuseWith(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN")).after(1)
		}},
	{name: "429 with Retry-After", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, respond(http.StatusTooManyRequests, "Retry-After", "7")).after(1)
		p.once("POST", beginRoute, respond(http.StatusTooManyRequests, "Retry-After", "8"))
		p.once("HEAD", blobRoute, respond(http.StatusTooManyRequests, "Retry-After", "9"))
		p.once("PUT", manifestRoute, respond(http.StatusTooManyRequests, "Retry-After", "10"))
	}, check: func(t *testing.T, _ *peer, waits []time.Duration) {
		long := 0
		for _, w := range waits {
			if w >= 7*time.Second {
				long++
			}
		}
		if long != 4 {
			t.Errorf("waited %v, want the Retry-After of each response", waits)
		}
	}},
	{name: "500 before a chunk", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, respond(http.StatusInternalServerError)).after(1)
	}},
	{name: "500 in the middle of a chunk", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, keepHalf(http.StatusInternalServerError)).after(1)
	}},
	{name: "500 after a chunk", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, withStatus(http.StatusInternalServerError)).after(1)
	}},
	{name: "500 after the commit", set: func(_ *testing.T, p *peer) {
		p.on("PUT", uploadRoute, withStatus(http.StatusInternalServerError))
	}, maxResent: 1},
	{name: "a tenth of all requests fails", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.on("", anyRoute, func(x *exchange) {
			if rand.N(10) == 0 {
				respond(http.StatusBadGateway + rand.N(2))(x)
				return
			}
			x.handle()
		})
	}},
	{name: "500 always", want: errAny, text: "500 Internal Server Error", mayLeaveOpen: true,
		set: func(_ *testing.T, p *peer) {
			p.on("PATCH", uploadRoute, respond(http.StatusInternalServerError)).after(1)
		}},
	{name: "responses are lost", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, cutAfter).after(1)
		p.once("PUT", uploadRoute, cutAfter)
		p.once("POST", beginRoute, cutAfter)
		p.once("HEAD", blobRoute, cutAfter)
		p.once("PUT", manifestRoute, cutAfter)
	}, mayLeaveOpen: true},
	{name: "a small blob is cut and kept", set: func(_ *testing.T, p *peer) {
		p.once("PUT", uploadRoute, cutRequest(60, true))
	}, maxResent: 1},
	{name: "a small blob is cut and not kept", set: func(_ *testing.T, p *peer) {
		p.once("PUT", uploadRoute, cutRequest(60, false))
	}},
	{name: "the session is lost after the last chunk", set: func(_ *testing.T, p *peer) {
		p.once("PUT", uploadRoute, func(x *exchange) { x.forgetUploads(); x.handle() })
	}, maxResent: -1},
	{name: "202 to the commit", set: func(_ *testing.T, p *peer) {
		p.on("PUT", uploadRoute, withStatus(http.StatusAccepted))
	}, maxResent: 1},
	{name: "a chunk is kept in part", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, keepHalf(http.StatusAccepted)).after(1)
	}},
	{name: "a chunk is not kept", set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, func(x *exchange) {
			_, _ = io.Copy(io.Discard, x.r.Body)
			x.sendProgress(http.StatusAccepted)
		}).after(1)
	}},
	{name: "an offset beyond the sent bytes", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, func(x *exchange) {
			rec := x.record()
			rec.Header().Set("Range", "0-99999999")
			x.replay(rec, nil)
		}).after(1)
	}},
	{name: "an invalid Range", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, func(x *exchange) {
			rec := x.record()
			rec.Header().Set("Range", "a few")
			x.replay(rec, nil)
		})
	}},
	{name: "absolute Locations", set: func(_ *testing.T, p *peer) {
		p.on("", uploadRoute, locations(func(l string) string { return p.server.URL + l }))
		p.on("", beginRoute, locations(func(l string) string { return p.server.URL + l }))
	}},
	{name: "Locations on another host", set: func(t *testing.T, p *peer) {
		other := httptest.NewServer(p)
		t.Cleanup(other.Close)
		requireToken(p, func(x *exchange) bool { return "http://"+x.r.Host != other.URL })
		p.on("", beginRoute, locations(func(l string) string { return other.URL + l }))
	}},
	{name: "chunks are redirected to another host", set: func(t *testing.T, p *peer) {
		other := httptest.NewServer(p)
		t.Cleanup(other.Close)
		p.on("", uploadRoute, func(x *exchange) {
			if at := "http://" + x.r.Host; at != other.URL {
				http.Redirect(x.w, x.r, other.URL+x.r.URL.String(), http.StatusTemporaryRedirect)
				return
			}
			x.handle()
		})
	}, maxResent: -1},
	{name: "tokens expire during the push", set: func(t *testing.T, p *peer) {
		expire := requireToken(p, func(*exchange) bool { return true })
		p.once("PATCH", uploadRoute, func(x *exchange) { expire(); x.handle() }).after(1)
		p.once("PUT", uploadRoute, func(x *exchange) { expire(); x.handle() })
		p.once("PUT", manifestRoute, func(x *exchange) { expire(); x.handle() })
	}},
	{name: "no chunks", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, refuseWith(http.StatusMethodNotAllowed, "UNSUPPORTED"))
	}, maxResent: -1},
	{name: "no chunks after the first", set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, refuseWith(http.StatusNotImplemented, "UNSUPPORTED")).after(1)
	}, maxResent: -1, mayLeaveOpen: true},
	{name: "chunks are too large", sizes: []int{6 * mib}, chunk: 4 * mib, set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, func(x *exchange) {
			if x.r.ContentLength > mib {
				respond(http.StatusRequestEntityTooLarge)(x)
				return
			}
			x.handle()
		})
	}, maxResent: -1},
	{name: "a small blob is too large", sizes: []int{6 * mib}, chunk: 8 * mib, set: func(_ *testing.T, p *peer) {
		p.on("", uploadRoute, func(x *exchange) {
			if x.r.ContentLength > 2*mib {
				respond(http.StatusRequestEntityTooLarge)(x)
				return
			}
			x.handle()
		})
	}, maxResent: -1},
	{name: "every chunk is too large", text: "this large", mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, respond(http.StatusRequestEntityTooLarge))
	}, want: errAny, maxResent: -1},
	{name: "interrupted chunks are not kept", sizes: []int{10 * mib}, chunk: 4 * mib, set: func(_ *testing.T, p *peer) {
		p.on("PATCH", uploadRoute, func(x *exchange) {
			if x.r.ContentLength > mib {
				cutRequest(mib, false)(x)
			}
			x.handle()
		})
	}, maxResent: 4 * mib},
	{name: "chunks have a minimum size", set: func(_ *testing.T, p *peer) { p.chunkMin = 100 * kib }, maxResent: 1},
	{name: "mounts without from are refused", set: func(_ *testing.T, p *peer) {
		p.on("POST", beginRoute, func(x *exchange) {
			if x.r.URL.Query().Has("mount") {
				refuseWith(http.StatusBadRequest, "UNSUPPORTED")(x)
				return
			}
			x.handle()
		})
	}},
	{name: "a digest mismatch, once", set: func(_ *testing.T, p *peer) {
		p.once("PUT", uploadRoute, refuseWith(http.StatusBadRequest, "DIGEST_INVALID"))
	}, maxResent: -1, mayLeaveOpen: true},
	{name: "a digest mismatch, twice", want: ErrDigest, mayLeaveOpen: true, maxResent: -1,
		set: func(_ *testing.T, p *peer) {
			p.on("PUT", uploadRoute, refuseWith(http.StatusBadRequest, "DIGEST_INVALID"))
		}},
	{name: "the registry stores another digest", want: ErrDigest, set: func(_ *testing.T, p *peer) {
		p.on("PUT", uploadRoute, respond(http.StatusCreated, "Docker-Content-Digest", string(digest.FromString("x"))))
	}, mayLeaveOpen: true, maxResent: -1},
	{name: "the registry stores another manifest", want: ErrDigest, set: func(_ *testing.T, p *peer) {
		p.on("PUT", manifestRoute, respond(http.StatusCreated, "Docker-Content-Digest", string(digest.FromString("x"))))
	}},
	{name: "no HEAD", set: func(_ *testing.T, p *peer) {
		p.on("HEAD", blobRoute, respond(http.StatusMethodNotAllowed))
	}},
	{name: "a blob is collected before the manifest arrives", maxResent: -1, set: func(_ *testing.T, p *peer) {
		p.once("PUT", manifestRoute, func(x *exchange) {
			x.dropBlob(x.repo, digest.FromBytes(noise(2, 100)))
			x.handle()
		})
	}},
	{name: "blobs are always collected", want: ErrNotFound, maxResent: -1, set: func(_ *testing.T, p *peer) {
		p.on("PUT", manifestRoute, refuseWith(http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN"))
	}},
	{name: "denied", want: ErrUnauthorized, text: "DENIED", set: func(_ *testing.T, p *peer) {
		p.on("POST", beginRoute, refuseWith(http.StatusForbidden, "DENIED"))
	}},
	{name: "the manifest is too large", want: errAny, text: "rejects a manifest", set: func(_ *testing.T, p *peer) {
		p.on("PUT", manifestRoute, respond(http.StatusRequestEntityTooLarge))
	}},
	{name: "the registry stops reading", stall: 500 * time.Millisecond, sizes: []int{12 * mib},
		chunk: 4 * mib, maxResent: 4 * mib,
		set: func(_ *testing.T, p *peer) {
			p.once("PATCH", uploadRoute, hang).after(1)
		}},
	{name: "the registry stops answering", stall: 50 * time.Millisecond, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, func(x *exchange) { x.record(); hang(x) })
		p.once("HEAD", blobRoute, hang)
	}},
	{name: "the status is refused", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *peer) {
		p.once("PATCH", uploadRoute, cutRequest(1000, true)).after(1)
		p.on("GET", uploadRoute, refuseWith(http.StatusMethodNotAllowed, "UNSUPPORTED"))
	}},
	{name: "a cut chunk ends the session, as in distribution 2.8", maxResent: -1, mayLeaveOpen: true,
		set: func(_ *testing.T, p *peer) {
			p.once("PATCH", uploadRoute, cutRequest(1000, true)).after(1)
			p.on("GET", uploadRoute, refuseWith(http.StatusNotFound, "BLOB_UPLOAD_INVALID"))
		}},
	{name: "connections are closed after each response", set: func(_ *testing.T, p *peer) {
		p.on("", anyRoute, func(x *exchange) {
			x.w.Header().Set("Connection", "close")
			x.handle()
		})
	}},
}

// errAny stands for any error.
var errAny = errors.New("any")

// keepHalf keeps half of a chunk and reports the new offset.
func keepHalf(status int) action {
	return func(x *exchange) {
		b, _ := io.ReadAll(x.r.Body)
		x.mu.Lock()
		x.received += int64(len(b) / 2)
		u := x.uploads[x.ref]
		u.bytes = append(u.bytes, b[:len(b)/2]...)
		x.mu.Unlock()
		x.sendProgress(status)
	}
}

func (x *exchange) sendProgress(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.progress(x.uploads[x.ref])
	x.w.WriteHeader(status)
}

// withStatus handles the request normally, and replaces the status of a successful response.
func withStatus(status int) action {
	return func(x *exchange) {
		rec := x.record()
		if rec.Code < 300 {
			rec.Code = status
		}
		x.replay(rec, rec.Body.Bytes())
	}
}

// locations changes the Locations of responses.
func locations(change func(string) string) action {
	return func(x *exchange) {
		rec := x.record()
		if l := rec.Header().Get("Location"); strings.HasPrefix(l, "/") {
			rec.Header().Set("Location", change(l))
		}
		x.replay(rec, rec.Body.Bytes())
	}
}

// requireToken makes a peer require a bearer token for requests for which asked returns true, and reject tokens in all
// others. expire invalidates the current token.
func requireToken(p *peer, asked func(x *exchange) bool) (expire func()) {
	var mu sync.Mutex
	serial := 1
	p.on("GET", otherRoute, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(x.w, `{"token":"token-%d"}`, serial)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow = func(x *exchange) bool {
		mu.Lock()
		want := "Bearer token-" + strconv.Itoa(serial)
		mu.Unlock()
		got := x.r.Header.Get("Authorization")
		if !asked(x) {
			if got != "" {
				p.t.Errorf("%s was sent the token", x.r.Host)
			}
			return true
		}
		if x.route == otherRoute || got == want {
			return true
		}
		respond(http.StatusUnauthorized, "WWW-Authenticate", `Bearer realm="`+p.server.URL+`/token",service="test"`)(x)
		return false
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		serial++
	}
}

func TestPushFaults(t *testing.T) {
	s := newStore(t) // shared, because creating it takes longer than a push
	usual, _ := putModel(t, s, "usual", 3*64*kib+500, 7000, 100)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t, s, usual)
		})
	}
	for tenth := range 10 {
		for _, keep := range []bool{true, false} {
			f := fault{name: fmt.Sprintf("cut at %d0%%, kept: %v", tenth, keep), set: func(_ *testing.T, p *peer) {
				size := int64(3*64*kib + 500)
				at := size * int64(tenth) / 10
				p.once("PATCH", uploadRoute, cutRequest(at%(64*kib), keep)).after(int(at / (64 * kib)))
			}}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.run(t, s, usual)
			})
		}
	}
}

func (f fault) run(t *testing.T, s *store.Store, name manifest.Name) {
	p := newPeer(t)
	if f.sizes != nil {
		name, _ = putModel(t, s, strings.ReplaceAll(f.name, " ", "-"), f.sizes...)
	}
	if f.chunk == 0 {
		f.chunk = 64 * kib
	}
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	want := raw.Descriptor.Digest
	f.set(t, p)
	var mu sync.Mutex
	var waits []time.Duration
	var last = map[digest.Digest]Event{}
	c := newClient(t, func(o *Options) {
		o.Concurrency, o.Connection.Attempts = 2, 12
		o.Events = func(e Event) { last[e.Digest] = e }
	})
	c.conn.sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
		return context.Cause(ctx)
	}
	dst := p.name("team/m:v1")
	got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: f.chunk, Stall: f.stall})
	if f.check != nil {
		f.check(t, p, waits)
	}
	if f.want != nil || f.text != "" {
		if err == nil || f.want != nil && f.want != errAny && !errors.Is(err, f.want) ||
			!strings.Contains(err.Error(), f.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %v with %q in one line", err, f.want, f.text)
		}
		if p.manifest("team/m", "v1") != nil {
			t.Error("the manifest is there")
		}
		return
	}
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s; requests:\n%s", got, err, want, strings.Join(p.log(), "\n"))
	}
	p.check("team/m", "v1", want)
	received, _ := p.traffic()
	switch most := f.maxResent; {
	case most == 0 && received-total(t, s, name) > f.chunk, most > 0 && received-total(t, s, name) > most:
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if open := p.openSessions(); len(open) > 0 && !f.mayLeaveOpen {
		t.Errorf("open sessions: %v; requests:\n%s", open, strings.Join(p.log(), "\n"))
	}
	for d, e := range last {
		key := (&pusher{dst: dst, r: &Repository{path: dst.Path}}).sessionKey(d)
		if _, err := os.Stat(filepath.Join(s.Root(), "ingest", "push-"+key.Encoded())); err == nil {
			t.Errorf("the session record of %s is left", d)
		}
		if d != "" && e.Kind != Done && e.Kind != Present && e.Kind != Mounted {
			t.Errorf("the last event of %s is %+v", d, e)
		}
	}
}

// TestPushListedTwice: a blob that two layers reference is uploaded once.
func TestPushListedTwice(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	d, n, err := s.PutBytes(t.Context(), noise(1, 5000))
	if err != nil {
		t.Fatal(err)
	}
	img := manifest.Image{Config: manifest.Config{ModelType: "llama"}, Layers: []manifest.Layer{
		{Kind: manifest.KindTensor, Name: "a", Digest: d, Size: n},
		{Kind: manifest.KindTensor, Name: "b", Digest: d, Size: n},
	}}
	name := manifest.Name{Path: "m", Tag: "latest"}
	want, err := s.Put(t.Context(), name, img)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t).Push(t.Context(), s, name, p.name("m"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check("m", "latest", want)
	if posts := p.count("POST", beginRoute); posts != 2 { // and the config
		t.Errorf("%d uploads for two blobs", posts)
	}
}

func TestPushDamaged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(path string) error
		want   error
	}{
		{"missing", os.Remove, manifest.ErrBlobMissing},
		{"cut", func(path string) error { return os.WriteFile(path, noise(0, 10), 0o644) }, manifest.ErrCorrupt},
		{"altered", func(path string) error { return os.WriteFile(path, noise(9, 3000), 0o644) }, manifest.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, s := newPeer(t), newStore(t)
			name, _ := putModel(t, s, "m", 3000)
			path := s.BlobPath(digest.FromBytes(noise(0, 3000)))
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			if _, err := newClient(t).Push(t.Context(), s, name, p.name("m"), PushOptions{}); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if p.manifest("m", "latest") != nil {
				t.Error("the manifest is there")
			}
			// The store need not have what the registry has.
			p.putBlob("m", noise(0, 3000))
			if _, err := newClient(t).Push(t.Context(), s, name, p.name("m"), PushOptions{}); err != nil {
				t.Errorf("with the blob at the registry: %v", err)
			}
		})
	}
}

// interrupt pushes until at bytes of a blob are sent, then cancels the push.
func interrupt(t *testing.T, s *store.Store, name, dst manifest.Name, opts PushOptions, at int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Moved && e.Bytes >= at {
				cancel()
			}
		}
	})
	if _, err := c.Push(ctx, s, name, dst, opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted push: %v", err)
	}
}

func TestPushResumes(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, want := putModel(t, s, "m", 20*mib)
	opts := PushOptions{ChunkSize: 2 * mib}
	interrupt(t, s, name, p.name("m"), opts, 9*mib)
	if left := leftovers(t, s); len(left) != 1 {
		t.Fatalf("left of an interrupted push: %v", left)
	}
	var begun int64
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Begin {
				begun = max(begun, e.Bytes)
			}
		}
	})
	if _, err := c.Push(t.Context(), s, name, p.name("m"), opts); err != nil {
		t.Fatal(err)
	}
	p.check("m", "latest", want)
	if received, _ := p.traffic(); received-total(t, s, name) > opts.ChunkSize {
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if begun < 6*mib {
		t.Errorf("resumed at %d", begun)
	}
	if left := append(p.openSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPushSessionLost: the registry dropped or refuses the session of an earlier run, or received the blob from another
// client.
func TestPushSessionLost(t *testing.T) {
	for name, meanwhile := range map[string]func(p *peer){
		"forgotten": (*peer).forgetUploads,
		"refused":   func(p *peer) { p.on("GET", uploadRoute, refuseWith(http.StatusForbidden, "DENIED")) },
		"present":   func(p *peer) { p.forgetUploads(); p.putBlob("m", noise(0, 20*mib)) },
	} {
		t.Run(name, func(t *testing.T) {
			p, s := newPeer(t), newStore(t)
			model, want := putModel(t, s, "m", 20*mib)
			opts := PushOptions{ChunkSize: 4 * mib}
			interrupt(t, s, model, p.name("m"), opts, 9*mib)
			meanwhile(p)
			if _, err := newClient(t).Push(t.Context(), s, model, p.name("m"), opts); err != nil {
				t.Fatal(err)
			}
			p.check("m", "latest", want)
			if left := leftovers(t, s); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestPushConcurrently: concurrent pushes of one model do not interfere.
func TestPushConcurrently(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, want := putModel(t, s, "m", 18*mib, 3000)
	var wait sync.WaitGroup
	for range 3 {
		c := newClient(t)
		wait.Go(func() {
			if _, err := c.Push(t.Context(), s, name, p.name("m"), PushOptions{ChunkSize: 4 * mib}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	p.check("m", "latest", want)
	if left := append(p.openSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPushMounts(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	base, _ := putModel(t, s, "base", 3000, 5000)
	if _, err := newClient(t).Push(t.Context(), s, base, p.name("team/base"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	tuned, want := putModel(t, s, "tuned", 3000, 5000, 7000)
	before, _ := p.traffic()
	var mounted int
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Mounted {
				mounted++
			}
		}
	})
	if _, err := c.Push(t.Context(), s, tuned, p.name("other/tuned"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check("other/tuned", "latest", want)
	after, _ := p.traffic()
	if sent := after - before; mounted != 2 || sent >= 3000+5000 {
		t.Errorf("%d blobs were mounted and %d bytes sent, want 2 and the third blob", mounted, sent)
	}
	if open := p.openSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}

	// A source repository that lost its blobs, or that may not be read, does not fail the push.
	for d := range p.repos["team/base"].blobs {
		p.dropBlob("team/base", d)
	}
	third, want := putModel(t, s, "third", 3000, 5000, 7000, 8)
	p.on("POST", beginRoute, func(x *exchange) {
		if x.r.URL.Query().Get("from") == "other/tuned" {
			refuseWith(http.StatusForbidden, "DENIED")(x)
			return
		}
		x.handle()
	})
	if _, err := c.Push(t.Context(), s, third, p.name("third"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check("third", "latest", want)
	if open := p.openSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}
}

func TestPushMountsAnonymously(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	p.anonymousMount = true
	name, want := putModel(t, s, "m", 3000, 5000)
	p.serve(s, name, "somebody/else", "x")
	if _, err := newClient(t).Push(t.Context(), s, name, p.name("mine"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check("mine", "latest", want)
	if received, _ := p.traffic(); received != 0 {
		t.Errorf("%d bytes were sent", received)
	}
}

// TestPushMonolithic: hosts with a hostRule get each blob in a single request.
func TestPushMonolithic(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, want := putModel(t, s, "m", 3*mib)
	c := newClient(t)
	h, err := c.conn.host(p.host())
	if err != nil {
		t.Fatal(err)
	}
	h.rule.monolithic = true
	p.once("PUT", uploadRoute, cutRequest(2*mib, true)).after(1)
	if _, err := c.Push(t.Context(), s, name, p.name("m"), PushOptions{ChunkSize: mib}); err != nil {
		t.Fatal(err)
	}
	p.check("m", "latest", want)
	if n := p.count("PATCH", uploadRoute); n != 0 {
		t.Errorf("%d chunks were sent", n)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestPushIndex: an index is pushed with those of its manifests that the store has.
func TestPushIndex(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, child := putModel(t, s, "m", 3000)
	raw, err := s.ResolveRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[`+
		`{"mediaType":%q,"digest":%q,"size":%d}]}`,
		raw.Descriptor.MediaType, child, len(raw.Bytes))
	all := manifest.Name{Path: "all", Tag: "latest"}
	want, err := s.PutRaw(t.Context(), all, "application/vnd.oci.image.index.v1+json", []byte(index),
		store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t).Push(t.Context(), s, all, p.name("all"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.check("all", "latest", want)
	p.check("all", string(child), child)
}

// TestPushFormat: a manifest that is encoded for the push has a config that the store lacks.
func TestPushFormat(t *testing.T) {
	p, s := newPeer(t), newStore(t)
	name, stored := putModel(t, s, "m", 3000, 100)
	got, err := newClient(t).Push(t.Context(), s, name, p.name("m"), PushOptions{Format: manifest.FormatOllama})
	if err != nil || got == stored {
		t.Fatalf("pushed %s, %v, the store has %s", got, err, stored)
	}
	p.check("m", "latest", got)
	if m := string(p.manifest("m", "latest")); !strings.Contains(m, "application/vnd.ollama.image.tensor") {
		t.Errorf("manifest %s", m)
	}
	if got, err = newClient(t).Push(t.Context(), s, name, p.name("m"),
		PushOptions{Format: manifest.FormatModelPack}); err != nil || got != stored {
		t.Errorf("pushed %s, %v, want %s", got, err, stored)
	}
	if _, err = newClient(t).Push(t.Context(), s, name, p.name("m"), PushOptions{Format: "tar"}); err == nil {
		t.Error("pushed in an unknown format")
	}
}

// newOlareg starts olareg, a registry that passes the conformance tests of the specification.
func newOlareg(t testing.TB) (host string) {
	t.Helper()
	reg := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	server := httptest.NewServer(reg)
	t.Cleanup(func() {
		server.Close()
		_ = reg.Close()
	})
	return server.Listener.Addr().String()
}

func TestPushToOlareg(t *testing.T) {
	host, s := newOlareg(t), newStore(t)
	name, want := putModel(t, s, "m", 0, 1, 5*mib, 70000)
	c := newClient(t)
	for _, path := range []string{"/m:v1", "/m:v1", "/m:v2", "/a/b/c/d/m:v1"} {
		dst, err := manifest.ParseName(host + path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: mib}); err != nil || got != want {
			t.Fatalf("%s: %s, %v, want %s", dst, got, err, want)
		}
		r, err := c.conn.repository(dst, pull)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.getManifest(t.Context(), dst.Tag)
		if err != nil || m.Digest != want {
			t.Errorf("%s: %v, %v", dst, m, err)
		}
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
