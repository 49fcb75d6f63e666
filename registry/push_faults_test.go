package registry

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

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
	{name: "416 always", mayLeaveOpen: true, maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.RefuseWith(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")).After(1)
	}},
	{name: "a session that is lost, and a DELETE that fails once", maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.Respond(http.StatusNotFound)).After(1)
		p.Once("DELETE", rt.UploadRoute, rt.Respond(http.StatusServiceUnavailable))
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
	{name: "sessions are always lost", maxResent: -1, mayLeaveOpen: true,
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
		// Responses that come together, of several blobs, close the gate once.
		if long < 2 || long > 4 || slices.Max(waits) < 10*time.Second {
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
	{name: "every chunk is too large", maxResent: -1, set: func(_ *testing.T, p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, rt.Respond(http.StatusRequestEntityTooLarge))
	}},
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
	{name: "the manifest is too large", want: errAny, text: " bytes: PUT", set: func(_ *testing.T, p *rt.Peer) {
		p.On("PUT", rt.ManifestRoute, rt.Respond(http.StatusRequestEntityTooLarge))
	}},
	{name: "the registry stops reading", stall: 500 * time.Millisecond, sizes: []int{12 * mib},
		chunk: 4 * mib, maxResent: 4 * mib,
		set: func(_ *testing.T, p *rt.Peer) {
			p.Once("PATCH", rt.UploadRoute, rt.Hang).After(1)
		}},
	// On a busy machine the response that opens a session may stall, too.
	{name: "the registry stops answering", stall: 50 * time.Millisecond, mayLeaveOpen: true,
		set: func(_ *testing.T, p *rt.Peer) {
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
func requireToken(p *rt.Peer, needsToken func(x *rt.Exchange) bool) (expire func()) {
	var mu sync.Mutex
	serial, accepted := 1, false
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
		got := x.R.Header.Get("Authorization")
		accepted = accepted || got == want
		mu.Unlock()
		if !needsToken(x) {
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
		if accepted { // a token that is refused from the start has no rights, and is not renewed
			serial, accepted = serial+1, false
		}
	}
}
