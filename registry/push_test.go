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
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
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
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 0, 1, 3000, 40*1000, 3*mib, 100)
	c := newClient(t)
	opts := PushOptions{ChunkSize: mib}
	got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v1"), opts)
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s", got, err, want)
	}
	p.Check("deep/path/to/m", "v1", want)
	if n := p.Count("PATCH", rt.UploadRoute); n != 3 {
		t.Errorf("%d chunks for a blob of three chunks", n)
	}
	received, _ := p.Traffic()
	if sum := total(t, s, name); received != sum {
		t.Errorf("%d bytes were sent of %d", received, sum)
	}
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	asked := len(p.Log())
	if got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v1"), opts); err != nil || got != want {
		t.Errorf("again: %s, %v", got, err)
	}
	if n := len(p.Log()) - asked; n != 1 {
		t.Errorf("%d requests where the registry has the model, want 1: %q", n, p.Log()[asked:])
	}
	if got, err := c.Push(t.Context(), s, name, p.Name("deep/path/to/m:v2"), opts); err != nil || got != want {
		t.Errorf("another tag: %s, %v", got, err)
	}
	p.Check("deep/path/to/m", "v2", want)
	if again, _ := p.Traffic(); again != received {
		t.Errorf("another tag sent %d bytes", again-received)
	}
}

func TestPushByDigest(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 10)
	other := digest.FromString("other")
	_, err := newClient(t).Push(t.Context(), s, name, p.Name("m@"+string(other)), PushOptions{})
	if !errors.Is(err, remote.ErrDigest) {
		t.Errorf("a name with another digest: %v", err)
	}
	got, err := newClient(t).Push(t.Context(), s, name, p.Name("m@"+string(want)), PushOptions{})
	if err != nil || got != want {
		t.Errorf("its own digest: %s, %v", got, err)
	}
	p.Check("m", string(want), want)
}

func TestPushRefusals(t *testing.T) {
	s := rt.NewStore(t)
	name, _ := rt.PutModel(t, s, "m", 10)
	local := name
	local.Path = "elsewhere"
	if _, err := newClient(t).Push(t.Context(), s, name, local, PushOptions{}); !errors.Is(err, remote.ErrNoHost) {
		t.Errorf("a local name: %v", err)
	}
	p := rt.New(t)
	_, err := newClient(t).Push(t.Context(), s, local, p.Name("m"), PushOptions{})
	if !errors.Is(err, manifest.ErrNotFound) {
		t.Errorf("no such model: %v", err)
	}
}

// fault is a faulty registry, and the expected result of a push to it.
type fault struct {
	name         string
	sizes        []int // of tensors; nil: one of three chunks and 500 bytes, and two small ones
	chunk        int64 // chunk size; 0: 64 KiB
	set          func(t *testing.T, p *rt.Peer)
	stall        time.Duration
	want         error  // the expected error; nil and no text: success
	text         string // expected part of the error's text
	maxResent    int64  // maximum bytes sent again; 0: one chunk, negative: any number
	mayLeaveOpen bool   // sessions may stay open at the registry
	check        func(t *testing.T, p *rt.Peer, waits []time.Duration)
}

var faults = []fault{
	{name: "416 with the offset", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, keepHalf(http.StatusRequestedRangeNotSatisfiable)).After(1)
	}},
	{name: "416 without an offset", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusRequestedRangeNotSatisfiable,
			"BLOB_UPLOAD_INVALID")).After(1)
	}},
	{name: "416 always", mayLeaveOpen: true, text: "416", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")).After(1)
	}},
	{name: "201 after the first chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, withStatus(http.StatusCreated))
	}},
	{name: "201 after each chunk, without a Location", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			rec := x.Record()
			rec.Header().Del("Location")
			rec.Code = http.StatusCreated
			x.Replay(rec, nil)
		})
	}},
	{name: "201 and a blob after the last chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			rec := x.Record()
			x.Mu.Lock()
			if u := x.Uploads[x.Ref]; u != nil && len(u.Bytes) == 3*64*kib+500 {
				d := digest.FromBytes(u.Bytes)
				x.InRepo(x.Repo).Blobs[d] = u.Bytes
				delete(x.Uploads, x.Ref)
				rec.Code = http.StatusCreated
				rec.Header().Set("Location", "/v2/"+x.Repo+"/blobs/"+string(d))
			}
			x.Mu.Unlock()
			x.Replay(rec, nil)
		})
	}},
	{name: "the session is lost", maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) { x.ForgetUploads(); x.Handle() }).After(2)
	}},
	{name: "the session is gone", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.Respond(http.StatusGone)).After(1)
	}},
	{name: "the session is lost, as in olareg", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusBadRequest, "BLOB_UPLOAD_UNKNOWN")).After(1)
	}},
	{name: "sessions are always lost", maxResent: -1, mayLeaveOpen: true, want: remote.ErrNotFound,
		set: func(_ *testing.T, p *rt.Peer) {
			p.On("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN")).After(1)
		}},
	{name: "429 with Retry-After", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.Respond(http.StatusTooManyRequests, "Retry-After", "7")).After(1)
		p.Once("POST", rt.BeginRoute, rt.Respond(http.StatusTooManyRequests, "Retry-After", "8"))
		p.Once("HEAD", rt.BlobRoute, rt.Respond(http.StatusTooManyRequests, "Retry-After", "9"))
		p.Once("PUT", rt.ManifestRoute, rt.Respond(http.StatusTooManyRequests, "Retry-After", "10"))
	}, check: func(t *testing.T, _ *rt.Peer, waits []time.Duration) {
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
	{name: "500 before a chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.Respond(http.StatusInternalServerError)).After(1)
	}},
	{name: "500 in the middle of a chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, keepHalf(http.StatusInternalServerError)).After(1)
	}},
	{name: "500 after a chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, withStatus(http.StatusInternalServerError)).After(1)
	}},
	{name: "500 after the commit", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.UploadRoute, withStatus(http.StatusInternalServerError))
	}, maxResent: 1},
	{name: "a tenth of all requests fails", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.On("", rt.AnyRoute, func(x *rt.Exchange) {
			if rand.N(10) == 0 {
				rt.Respond(http.StatusBadGateway + rand.N(2))(x)
				return
			}
			x.Handle()
		})
	}},
	{name: "500 always", want: errAny, text: "500 Internal Server Error", mayLeaveOpen: true,
		set: func(_ *testing.T, p *rt.Peer) {
			p.On("PATCH", rt.UploadRoute, rt.Respond(http.StatusInternalServerError)).After(1)
		}},
	{name: "responses are lost", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.CutAfter).After(1)
		p.Once("PUT", rt.UploadRoute, rt.CutAfter)
		p.Once("POST", rt.BeginRoute, rt.CutAfter)
		p.Once("HEAD", rt.BlobRoute, rt.CutAfter)
		p.Once("PUT", rt.ManifestRoute, rt.CutAfter)
	}, mayLeaveOpen: true},
	{name: "a small blob is cut and kept", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PUT", rt.UploadRoute, rt.CutRequest(60, true))
	}, maxResent: 1},
	{name: "a small blob is cut and not kept", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PUT", rt.UploadRoute, rt.CutRequest(60, false))
	}},
	{name: "the session is lost after the last chunk", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PUT", rt.UploadRoute, func(x *rt.Exchange) { x.ForgetUploads(); x.Handle() })
	}, maxResent: -1},
	{name: "202 to the commit", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.UploadRoute, withStatus(http.StatusAccepted))
	}, maxResent: 1},
	{name: "a chunk is kept in part", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, keepHalf(http.StatusAccepted)).After(1)
	}},
	{name: "a chunk is not kept", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			_, _ = io.Copy(io.Discard, x.R.Body)
			x.SendProgress(http.StatusAccepted)
		}).After(1)
	}},
	{name: "an offset beyond the sent bytes", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			rec := x.Record()
			rec.Header().Set("Range", "0-99999999")
			x.Replay(rec, nil)
		}).After(1)
	}},
	{name: "an invalid Range", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			rec := x.Record()
			rec.Header().Set("Range", "a few")
			x.Replay(rec, nil)
		})
	}},
	{name: "absolute Locations", set: func(_ *testing.T, p *rt.Peer) {
		p.On("", rt.UploadRoute, locations(func(l string) string { return p.Server.URL + l }))
		p.On("", rt.BeginRoute, locations(func(l string) string { return p.Server.URL + l }))
	}},
	{name: "Locations on another host", set: func(t *testing.T, p *rt.Peer) {
		other := httptest.NewServer(p)
		t.Cleanup(other.Close)
		requireToken(p, func(x *rt.Exchange) bool { return "http://"+x.R.Host != other.URL })
		p.On("", rt.BeginRoute, locations(func(l string) string { return other.URL + l }))
	}},
	{name: "chunks are redirected to another host", set: func(t *testing.T, p *rt.Peer) {
		other := httptest.NewServer(p)
		t.Cleanup(other.Close)
		p.On("", rt.UploadRoute, func(x *rt.Exchange) {
			if at := "http://" + x.R.Host; at != other.URL {
				http.Redirect(x.W, x.R, other.URL+x.R.URL.String(), http.StatusTemporaryRedirect)
				return
			}
			x.Handle()
		})
	}, maxResent: -1},
	{name: "tokens expire during the push", set: func(t *testing.T, p *rt.Peer) {
		expire := requireToken(p, func(*rt.Exchange) bool { return true })
		p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) { expire(); x.Handle() }).After(1)
		p.Once("PUT", rt.UploadRoute, func(x *rt.Exchange) { expire(); x.Handle() })
		p.Once("PUT", rt.ManifestRoute, func(x *rt.Exchange) { expire(); x.Handle() })
	}},
	{name: "no chunks", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusMethodNotAllowed, "UNSUPPORTED"))
	}, maxResent: -1},
	{name: "no chunks after the first", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusNotImplemented, "UNSUPPORTED")).After(1)
	}, maxResent: -1, mayLeaveOpen: true},
	{name: "chunks are too large", sizes: []int{6 * mib}, chunk: 4 * mib, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			if x.R.ContentLength > mib {
				rt.Respond(http.StatusRequestEntityTooLarge)(x)
				return
			}
			x.Handle()
		})
	}, maxResent: -1},
	{name: "a small blob is too large", sizes: []int{6 * mib}, chunk: 8 * mib, set: func(_ *testing.T, p *rt.Peer) {
		p.On("", rt.UploadRoute, func(x *rt.Exchange) {
			if x.R.ContentLength > 2*mib {
				rt.Respond(http.StatusRequestEntityTooLarge)(x)
				return
			}
			x.Handle()
		})
	}, maxResent: -1},
	{name: "every chunk is too large", text: "this large", mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.Respond(http.StatusRequestEntityTooLarge))
	}, want: errAny, maxResent: -1},
	{name: "interrupted chunks are not kept", sizes: []int{10 * mib}, chunk: 4 * mib, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, func(x *rt.Exchange) {
			if x.R.ContentLength > mib {
				rt.CutRequest(mib, false)(x)
			}
			x.Handle()
		})
	}, maxResent: 4 * mib},
	{name: "chunks have a minimum size", set: func(_ *testing.T, p *rt.Peer) { p.ChunkMin = 100 * kib }, maxResent: 1},
	{name: "mounts without from are refused", set: func(_ *testing.T, p *rt.Peer) {
		p.On("POST", rt.BeginRoute, func(x *rt.Exchange) {
			if x.R.URL.Query().Has("mount") {
				rt.RefuseWith(http.StatusBadRequest, "UNSUPPORTED")(x)
				return
			}
			x.Handle()
		})
	}},
	{name: "a digest mismatch, once", set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PUT", rt.UploadRoute, rt.RefuseWith(http.StatusBadRequest, "DIGEST_INVALID"))
	}, maxResent: -1, mayLeaveOpen: true},
	{name: "a digest mismatch, twice", want: remote.ErrDigest, mayLeaveOpen: true, maxResent: -1,
		set: func(_ *testing.T, p *rt.Peer) {
			p.On("PUT", rt.UploadRoute, rt.RefuseWith(http.StatusBadRequest, "DIGEST_INVALID"))
		}},
	{name: "the registry stores another digest", want: remote.ErrDigest, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.UploadRoute, rt.Respond(http.StatusCreated, "Docker-Content-Digest", string(digest.FromString("x"))))
	}, mayLeaveOpen: true, maxResent: -1},
	{name: "the registry stores another manifest", want: remote.ErrDigest, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.ManifestRoute, rt.Respond(http.StatusCreated, "Docker-Content-Digest", string(digest.FromString("x"))))
	}},
	{name: "no HEAD", set: func(_ *testing.T, p *rt.Peer) {
		p.On("HEAD", rt.BlobRoute, rt.Respond(http.StatusMethodNotAllowed))
	}},
	{name: "a blob is collected before the manifest arrives", maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PUT", rt.ManifestRoute, func(x *rt.Exchange) {
			x.DropBlob(x.Repo, digest.FromBytes(rt.Noise(2, 100)))
			x.Handle()
		})
	}},
	{name: "blobs are always collected", want: remote.ErrNotFound, maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.ManifestRoute, rt.RefuseWith(http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN"))
	}},
	{name: "denied", want: remote.ErrUnauthorized, text: "DENIED", set: func(_ *testing.T, p *rt.Peer) {
		p.On("POST", rt.BeginRoute, rt.RefuseWith(http.StatusForbidden, "DENIED"))
	}},
	{name: "the manifest is too large", want: errAny, text: "rejects a manifest", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.ManifestRoute, rt.Respond(http.StatusRequestEntityTooLarge))
	}},
	{name: "the registry stops reading", stall: 500 * time.Millisecond, sizes: []int{12 * mib},
		chunk: 4 * mib, maxResent: 4 * mib,
		set: func(_ *testing.T, p *rt.Peer) {
			p.Once("PATCH", rt.UploadRoute, rt.Hang).After(1)
		}},
	{name: "the registry stops answering", stall: 50 * time.Millisecond, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, func(x *rt.Exchange) { x.Record(); rt.Hang(x) })
		p.Once("HEAD", rt.BlobRoute, rt.Hang)
	}},
	{name: "the status is refused", maxResent: -1, mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.CutRequest(1000, true)).After(1)
		p.On("GET", rt.UploadRoute, rt.RefuseWith(http.StatusMethodNotAllowed, "UNSUPPORTED"))
	}},
	{name: "a cut chunk ends the session, as in distribution 2.8", maxResent: -1, mayLeaveOpen: true,
		set: func(_ *testing.T, p *rt.Peer) {
			p.Once("PATCH", rt.UploadRoute, rt.CutRequest(1000, true)).After(1)
			p.On("GET", rt.UploadRoute, rt.RefuseWith(http.StatusNotFound, "BLOB_UPLOAD_INVALID"))
		}},
	{name: "connections are closed after each response", set: func(_ *testing.T, p *rt.Peer) {
		p.On("", rt.AnyRoute, func(x *rt.Exchange) {
			x.W.Header().Set("Connection", "close")
			x.Handle()
		})
	}},
}

// errAny stands for any error.
var errAny = errors.New("any")

// keepHalf keeps half of a chunk and reports the new offset.
func keepHalf(status int) rt.Action {
	return func(x *rt.Exchange) {
		b, _ := io.ReadAll(x.R.Body)
		x.Mu.Lock()
		x.Received += int64(len(b) / 2)
		u := x.Uploads[x.Ref]
		u.Bytes = append(u.Bytes, b[:len(b)/2]...)
		x.Mu.Unlock()
		x.SendProgress(status)
	}
}

// withStatus handles the request normally, and replaces the status of a successful response.
func withStatus(status int) rt.Action {
	return func(x *rt.Exchange) {
		rec := x.Record()
		if rec.Code < 300 {
			rec.Code = status
		}
		x.Replay(rec, rec.Body.Bytes())
	}
}

// locations changes the Locations of responses.
func locations(change func(string) string) rt.Action {
	return func(x *rt.Exchange) {
		rec := x.Record()
		if l := rec.Header().Get("Location"); strings.HasPrefix(l, "/") {
			rec.Header().Set("Location", change(l))
		}
		x.Replay(rec, rec.Body.Bytes())
	}
}

// requireToken makes a peer require a bearer token for requests for which asked returns true, and reject tokens in all
// others. expire invalidates the current token.
func requireToken(p *rt.Peer, asked func(x *rt.Exchange) bool) (expire func()) {
	var mu sync.Mutex
	serial := 1
	p.On("GET", rt.OtherRoute, func(x *rt.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(x.W, `{"token":"token-%d"}`, serial)
	})
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Allow = func(x *rt.Exchange) bool {
		mu.Lock()
		want := "Bearer token-" + strconv.Itoa(serial)
		mu.Unlock()
		got := x.R.Header.Get("Authorization")
		if !asked(x) {
			if got != "" {
				p.T.Errorf("%s was sent the token", x.R.Host)
			}
			return true
		}
		if x.Route == rt.OtherRoute || got == want {
			return true
		}
		rt.Respond(http.StatusUnauthorized, "WWW-Authenticate", `Bearer realm="`+p.Server.URL+`/token",service="test"`)(x)
		return false
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		serial++
	}
}

func TestPushFaults(t *testing.T) {
	s := rt.NewStore(t) // shared, because creating it takes longer than a push
	usual, _ := rt.PutModel(t, s, "usual", 3*64*kib+500, 7000, 100)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t, s, usual)
		})
	}
	for tenth := range 10 {
		for _, keep := range []bool{true, false} {
			f := fault{name: fmt.Sprintf("cut at %d0%%, kept: %v", tenth, keep), set: func(_ *testing.T, p *rt.Peer) {
				size := int64(3*64*kib + 500)
				at := size * int64(tenth) / 10
				p.Once("PATCH", rt.UploadRoute, rt.CutRequest(at%(64*kib), keep)).After(int(at / (64 * kib)))
			}}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.run(t, s, usual)
			})
		}
	}
}

func (f fault) run(t *testing.T, s *store.Store, name manifest.Name) {
	p := rt.New(t)
	if f.sizes != nil {
		name, _ = rt.PutModel(t, s, strings.ReplaceAll(f.name, " ", "-"), f.sizes...)
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
	c.conn.Sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
		return context.Cause(ctx)
	}
	dst := p.Name("team/m:v1")
	got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: f.chunk, Stall: f.stall})
	if f.check != nil {
		f.check(t, p, waits)
	}
	if f.want != nil || f.text != "" {
		if err == nil || f.want != nil && f.want != errAny && !errors.Is(err, f.want) ||
			!strings.Contains(err.Error(), f.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %v with %q in one line", err, f.want, f.text)
		}
		if p.Manifest("team/m", "v1") != nil {
			t.Error("the manifest is there")
		}
		return
	}
	if err != nil || got != want {
		t.Fatalf("pushed %s, %v, want %s; requests:\n%s", got, err, want, strings.Join(p.Log(), "\n"))
	}
	p.Check("team/m", "v1", want)
	received, _ := p.Traffic()
	switch most := f.maxResent; {
	case most == 0 && received-total(t, s, name) > f.chunk, most > 0 && received-total(t, s, name) > most:
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if open := p.OpenSessions(); len(open) > 0 && !f.mayLeaveOpen {
		t.Errorf("open sessions: %v; requests:\n%s", open, strings.Join(p.Log(), "\n"))
	}
	for d, e := range last {
		key := (&pusher{dst: dst, r: &remote.Repository{Path: dst.Path}}).sessionKey(d)
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
	p, s := rt.New(t), rt.NewStore(t)
	d, n, err := s.PutBytes(t.Context(), rt.Noise(1, 5000))
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
	if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if posts := p.Count("POST", rt.BeginRoute); posts != 2 { // and the config
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
		{"cut", func(path string) error { return os.WriteFile(path, rt.Noise(0, 10), 0o644) }, manifest.ErrCorrupt},
		{"altered", func(path string) error { return os.WriteFile(path, rt.Noise(9, 3000), 0o644) }, manifest.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, s := rt.New(t), rt.NewStore(t)
			name, _ := rt.PutModel(t, s, "m", 3000)
			path := s.BlobPath(digest.FromBytes(rt.Noise(0, 3000)))
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if p.Manifest("m", "latest") != nil {
				t.Error("the manifest is there")
			}
			// The store need not have what the registry has.
			p.PutBlob("m", rt.Noise(0, 3000))
			if _, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{}); err != nil {
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
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 20*mib)
	opts := PushOptions{ChunkSize: 2 * mib}
	interrupt(t, s, name, p.Name("m"), opts, 9*mib)
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
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), opts); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if received, _ := p.Traffic(); received-total(t, s, name) > opts.ChunkSize {
		t.Errorf("%d bytes were sent twice", received-total(t, s, name))
	}
	if begun < 6*mib {
		t.Errorf("resumed at %d", begun)
	}
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPushSessionLost: the registry dropped or refuses the session of an earlier run, or received the blob from another
// client.
func TestPushSessionLost(t *testing.T) {
	for name, meanwhile := range map[string]func(p *rt.Peer){
		"forgotten": (*rt.Peer).ForgetUploads,
		"refused": func(p *rt.Peer) {
			p.On("GET", rt.UploadRoute, rt.RefuseWith(http.StatusForbidden, "DENIED"))
		},
		"present": func(p *rt.Peer) { p.ForgetUploads(); p.PutBlob("m", rt.Noise(0, 20*mib)) },
	} {
		t.Run(name, func(t *testing.T) {
			p, s := rt.New(t), rt.NewStore(t)
			model, want := rt.PutModel(t, s, "m", 20*mib)
			opts := PushOptions{ChunkSize: 4 * mib}
			interrupt(t, s, model, p.Name("m"), opts, 9*mib)
			meanwhile(p)
			if _, err := newClient(t).Push(t.Context(), s, model, p.Name("m"), opts); err != nil {
				t.Fatal(err)
			}
			p.Check("m", "latest", want)
			if left := leftovers(t, s); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestPushConcurrently: concurrent pushes of one model do not interfere.
func TestPushConcurrently(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 18*mib, 3000)
	var wait sync.WaitGroup
	for range 3 {
		c := newClient(t)
		wait.Go(func() {
			if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: 4 * mib}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	p.Check("m", "latest", want)
	if left := append(p.OpenSessions(), leftovers(t, s)...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPushMounts(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	base, _ := rt.PutModel(t, s, "base", 3000, 5000)
	if _, err := newClient(t).Push(t.Context(), s, base, p.Name("team/base"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	tuned, want := rt.PutModel(t, s, "tuned", 3000, 5000, 7000)
	before, _ := p.Traffic()
	var mounted int
	c := newClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Mounted {
				mounted++
			}
		}
	})
	if _, err := c.Push(t.Context(), s, tuned, p.Name("other/tuned"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("other/tuned", "latest", want)
	after, _ := p.Traffic()
	if sent := after - before; mounted != 2 || sent >= 3000+5000 {
		t.Errorf("%d blobs were mounted and %d bytes sent, want 2 and the third blob", mounted, sent)
	}
	if open := p.OpenSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}

	// A source repository that lost its blobs, or that may not be read, does not fail the push.
	for d := range p.Repos["team/base"].Blobs {
		p.DropBlob("team/base", d)
	}
	third, want := rt.PutModel(t, s, "third", 3000, 5000, 7000, 8)
	p.On("POST", rt.BeginRoute, func(x *rt.Exchange) {
		if x.R.URL.Query().Get("from") == "other/tuned" {
			rt.RefuseWith(http.StatusForbidden, "DENIED")(x)
			return
		}
		x.Handle()
	})
	if _, err := c.Push(t.Context(), s, third, p.Name("third"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("third", "latest", want)
	if open := p.OpenSessions(); len(open) > 0 {
		t.Errorf("uploads are left: %v", open)
	}
}

func TestPushMountsAnonymously(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	p.AnonymousMount = true
	name, want := rt.PutModel(t, s, "m", 3000, 5000)
	p.Serve(s, name, "somebody/else", "x")
	if _, err := newClient(t).Push(t.Context(), s, name, p.Name("mine"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("mine", "latest", want)
	if received, _ := p.Traffic(); received != 0 {
		t.Errorf("%d bytes were sent", received)
	}
}

// TestPushMonolithic: hosts with a hostRule get each blob in a single request.
func TestPushMonolithic(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 3*mib)
	c := newClient(t)
	c.rule = func(string) hostRule { return hostRule{monolithic: true} }
	p.Once("PUT", rt.UploadRoute, rt.CutRequest(2*mib, true)).After(1)
	if _, err := c.Push(t.Context(), s, name, p.Name("m"), PushOptions{ChunkSize: mib}); err != nil {
		t.Fatal(err)
	}
	p.Check("m", "latest", want)
	if n := p.Count("PATCH", rt.UploadRoute); n != 0 {
		t.Errorf("%d chunks were sent", n)
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestPushIndex: an index is pushed with those of its manifests that the store has.
func TestPushIndex(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, child := rt.PutModel(t, s, "m", 3000)
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
	if _, err := newClient(t).Push(t.Context(), s, all, p.Name("all"), PushOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Check("all", "latest", want)
	p.Check("all", string(child), child)
}

// TestPushFormat: a manifest that is encoded for the push has a config that the store lacks.
func TestPushFormat(t *testing.T) {
	p, s := rt.New(t), rt.NewStore(t)
	name, stored := rt.PutModel(t, s, "m", 3000, 100)
	got, err := newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{Format: manifest.FormatOllama})
	if err != nil || got == stored {
		t.Fatalf("pushed %s, %v, the store has %s", got, err, stored)
	}
	p.Check("m", "latest", got)
	if m := string(p.Manifest("m", "latest")); !strings.Contains(m, "application/vnd.ollama.image.tensor") {
		t.Errorf("manifest %s", m)
	}
	if got, err = newClient(t).Push(t.Context(), s, name, p.Name("m"),
		PushOptions{Format: manifest.FormatModelPack}); err != nil || got != stored {
		t.Errorf("pushed %s, %v, want %s", got, err, stored)
	}
	if _, err = newClient(t).Push(t.Context(), s, name, p.Name("m"), PushOptions{Format: "tar"}); err == nil {
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
	host, s := newOlareg(t), rt.NewStore(t)
	name, want := rt.PutModel(t, s, "m", 0, 1, 5*mib, 70000)
	c := newClient(t)
	for _, path := range []string{"/m:v1", "/m:v1", "/m:v2", "/a/b/c/d/m:v1"} {
		dst, err := manifest.ParseName(host + path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Push(t.Context(), s, name, dst, PushOptions{ChunkSize: mib}); err != nil || got != want {
			t.Fatalf("%s: %s, %v, want %s", dst, got, err, want)
		}
		r, err := c.conn.Repository(dst, remote.Pull)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.GetManifest(t.Context(), dst.Tag)
		if err != nil || m.Digest != want {
			t.Errorf("%s: %v, %v", dst, m, err)
		}
	}
	if left := leftovers(t, s); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
