package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// fallback is a step that a registry refuses in one of these ways, where the push takes another way. If the registry
// refuses that too, the push fails with one error, after a bounded number of requests.
type fallback struct {
	name  string
	ways  map[string]func(p *rt.Peer)
	also  func(x *rt.Exchange) int // status that refuses the other way, or 0
	want  error                    // then
	text  string                   // of that error
	most  int                      // requests then
	sizes []int                    // as of a fault
	chunk int64
	stall time.Duration
}

// The fallbacks of docs/registries.md, in its order.
var fallbacks = []fallback{
	{name: "a chunk, then one PUT", ways: refusals("PATCH", rt.UploadRoute,
		200, 201, 400, 403, 404, 405, 409, 411, 412, 415, 416, 422, 501),
		also: put(403), want: remote.ErrUnauthorized, text: "PUT", most: 40},
	{name: "a chunk that always fails, then one PUT", ways: refusals("PATCH", rt.UploadRoute, 0, 500, 522),
		also: put(500), text: "500", most: 150},
	{name: "chunks after the first, then one PUT", ways: map[string]func(p *rt.Peer){
		"refused":           func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, rt.Respond(501)).After(1) },
		"lost":              func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, dropChunk(202)).After(1) },
		"lost, as with ECR": func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, dropChunk(201)).After(1) },
		"lost, with 200":    func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, dropChunk(200)).After(1) },
		"416":               func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, rt.Respond(416)).After(1) },
		"404":               func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, rt.Respond(404)).After(1) },
		"beyond N bytes":    func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, upTo(100*kib)) },
		"a byte of each":    func(p *rt.Peer) { p.On("PATCH", rt.UploadRoute, keepByte) },
	}, also: put(413), want: remote.ErrBodySize, text: "413", most: 60},
	{name: "a large chunk, then smaller ones", ways: refusals("PATCH", rt.UploadRoute, 413), sizes: []int{3 * mib},
		chunk: 2 * mib, also: put(413), want: remote.ErrBodySize, text: "413", most: 30},
	{name: "one PUT, then chunks", sizes: []int{3 * mib}, chunk: 8 * mib, ways: map[string]func(p *rt.Peer){
		"413":                func(p *rt.Peer) { p.On("PUT", rt.UploadRoute, above(mib, rt.Respond(413))) },
		"413 to chunks too":  func(p *rt.Peer) { p.On("", rt.UploadRoute, above(mib, rt.Respond(413))) },
		"cut":                func(p *rt.Peer) { p.On("PUT", rt.UploadRoute, above(mib, rt.CutRequest(1000, false))) },
		"cut, and chunks":    func(p *rt.Peer) { p.On("", rt.UploadRoute, above(mib, rt.CutRequest(1000, false))) },
		"504":                func(p *rt.Peer) { p.On("PUT", rt.UploadRoute, above(mib, rt.Respond(504))) },
		"only 256 KiB, said": func(p *rt.Peer) { p.On("", rt.UploadRoute, above(256*kib, rt.Respond(413))) },
		"only 256 KiB, cut":  func(p *rt.Peer) { p.On("", rt.UploadRoute, above(256*kib, rt.CutRequest(9, false))) },
	}, also: request("PATCH", rt.UploadRoute, 413), text: "", most: 80},
	{name: "a mount from any repository, then an upload",
		ways: mounts(false, 0, 200, 201, 202, 400, 401, 403, 404, 405, 500, 503),
		also: upload403, want: remote.ErrUnauthorized, text: "403", most: 40},
	{name: "a mount that hangs, then an upload", stall: 100 * time.Millisecond, ways: map[string]func(p *rt.Peer){
		"": func(p *rt.Peer) { p.On("POST", rt.BeginRoute, mounting(false, rt.Hang)) },
	}, also: upload403, want: remote.ErrUnauthorized, text: "403", most: 40},
	{name: "HEAD of a blob, then GET, then an upload", ways: map[string]func(p *rt.Peer){
		"HEAD":         func(p *rt.Peer) { p.On("HEAD", rt.BlobRoute, rt.Respond(405)) },
		"redirected":   func(p *rt.Peer) { p.On("HEAD", rt.BlobRoute, elsewhere(p, 403)) },
		"both, 400":    refuse("", rt.BlobRoute, 400),
		"both, 401":    refuse("", rt.BlobRoute, 401),
		"both, 403":    refuse("", rt.BlobRoute, 403),
		"both, 501":    refuse("", rt.BlobRoute, 501),
		"always fails": refuse("HEAD", rt.BlobRoute, 500),
	}, also: request("POST", rt.BeginRoute, 403), want: remote.ErrUnauthorized, text: "403", most: 80},
	{name: "HEAD of a manifest, then GET, then a PUT", ways: map[string]func(p *rt.Peer){
		"HEAD":         func(p *rt.Peer) { p.On("HEAD", rt.ManifestRoute, rt.Respond(405)) },
		"no digest":    func(p *rt.Peer) { p.On("HEAD", rt.ManifestRoute, rt.Respond(200)) },
		"always fails": refuse("HEAD", rt.ManifestRoute, 500), "both always fail": reading(502),
		"400": reading(400), "401": reading(401), "403": reading(403), "405": reading(405), "501": reading(501),
	}, also: request("PUT", rt.ManifestRoute, 403), want: remote.ErrUnauthorized, text: "403", most: 50},
	{name: "the offset of a session, then another session", ways: map[string]func(p *rt.Peer){
		"no Range":          offset(func(int) string { return "" }),
		"of the last chunk": offset(func(n int) string { return fmt.Sprintf("%d-%d", n/2, n-1) }),
		"always 0-0":        offset(func(int) string { return "0-0" }),
		"one too many":      offset(func(n int) string { return fmt.Sprintf("0-%d", n) }),
		"far too many":      offset(func(n int) string { return "0-999999999" }),
		"403":               interruptedThen(rt.Respond(403)),
		"404":               interruptedThen(rt.Respond(404)),
		"500":               interruptedThen(rt.Respond(500)),
	}, also: func(x *rt.Exchange) int {
		if x.Route == rt.UploadRoute && x.R.Method == "PATCH" && !strings.HasPrefix(x.R.Header.Get("Content-Range"), "0-") {
			return 502
		}
		return put(403)(x)
	}, text: "", most: 90},
	{name: "a PUT of a blob, then HEAD", ways: map[string]func(p *rt.Peer){
		"200": committed(200), "400": committed(400), "404": committed(404), "409": committed(409), "500": committed(500),
	}, also: request("HEAD", rt.BlobRoute, 404), text: "", most: 90},
	{name: "a PUT of a manifest, then HEAD", ways: map[string]func(p *rt.Peer){
		"409": func(p *rt.Peer) { p.On("PUT", rt.ManifestRoute, withStatus(409)) },
	}, also: request("PUT", rt.ManifestRoute, 409), text: "409", most: 40},
	{name: "a manifest, then its blobs", ways: map[string]func(p *rt.Peer){
		"late": func(p *rt.Peer) {
			p.Once("PUT", rt.ManifestRoute, rt.RefuseWith(400, "MANIFEST_BLOB_UNKNOWN")).Times(3)
		},
		"lost": func(p *rt.Peer) {
			p.Once("PUT", rt.ManifestRoute, func(x *rt.Exchange) {
				x.DropBlob(x.Repo, digest.FromBytes(rt.Noise(2, 100)))
				x.Handle()
			})
		},
		"never": func(p *rt.Peer) {},
	}, also: request("PUT", rt.ManifestRoute, 404), want: remote.ErrNotFound, text: "404", most: 50},
}

// TestFallbacks: where one way is refused, the push succeeds. Where the other is refused too, it fails, soon.
func TestFallbacks(t *testing.T) {
	s := rt.NewStore(t)
	usual, _ := rt.PutModel(t, s, "usual", 3*64*kib+500, 7000, 100)
	for _, f := range fallbacks {
		for way, set := range f.ways {
			t.Run(f.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				f.fault(way, set).run(t, s, usual)
			})
			t.Run(f.name+"/"+way+", and the other", func(t *testing.T) {
				t.Parallel()
				both := f.fault(way, func(p *rt.Peer) {
					set(p)
					p.Allow = func(x *rt.Exchange) bool {
						status := f.also(x)
						if status != 0 {
							x.Fail(status, "UNKNOWN")
						}
						return status == 0
					}
				})
				both.want, both.text = f.want, f.text
				if both.want == nil {
					both.want = errAny
				}
				both.check = func(t *testing.T, p *rt.Peer, _ []time.Duration) {
					if n := len(p.Log()); n > f.most {
						t.Errorf("%d requests, want at most %d:\n%s", n, f.most, strings.Join(p.Log(), "\n"))
					}
				}
				both.run(t, s, usual)
			})
		}
	}
}

// fault returns the fault of one way of a fallback.
func (f fallback) fault(way string, set func(p *rt.Peer)) fault {
	return fault{name: f.name + " " + way, sizes: f.sizes, chunk: f.chunk, stall: f.stall, maxResent: -1,
		mayLeaveOpen: true, set: func(_ *testing.T, p *rt.Peer) { set(p) }}
}

// request refuses requests, as the other way of a fallback.
func request(method string, about rt.Route, status int) func(x *rt.Exchange) int {
	return func(x *rt.Exchange) int {
		if x.R.Method == method && x.Route == about {
			return status
		}
		return 0
	}
}

// put refuses PUTs of large blobs.
func put(status int) func(x *rt.Exchange) int {
	return func(x *rt.Exchange) int {
		if x.R.ContentLength < 100*kib {
			return 0
		}
		return request("PUT", rt.UploadRoute, status)(x)
	}
}

// upload403 refuses uploads, but not mounts.
func upload403(x *rt.Exchange) int {
	if x.R.URL.Query().Has("mount") {
		return 0
	}
	return request("POST", rt.BeginRoute, 403)(x)
}

// allFaults are the faults, and those of the fallbacks.
func allFaults() []fault {
	all := faults
	for _, f := range fallbacks {
		for way, set := range f.ways {
			all = append(all, f.fault(way, set))
		}
	}
	return all
}

// refuse refuses requests with a status, or cuts them if it is 0.
func refuse(method string, about rt.Route, status int) func(p *rt.Peer) {
	return func(p *rt.Peer) { p.On(method, about, refusal(status)) }
}

func refusal(status int) rt.Action {
	if status == 0 {
		return rt.CutRequest(100, false)
	}
	return rt.Respond(status)
}

func refusals(method string, about rt.Route, statuses ...int) map[string]func(p *rt.Peer) {
	ways := map[string]func(p *rt.Peer){}
	for _, status := range statuses {
		ways[fmt.Sprint(status)] = refuse(method, about, status)
	}
	return ways
}

// reading refuses to tell which manifests are there.
func reading(status int) func(p *rt.Peer) {
	return func(p *rt.Peer) {
		p.On("HEAD", rt.ManifestRoute, rt.Respond(status))
		p.On("GET", rt.ManifestRoute, rt.Respond(status))
	}
}

// mounting does something instead of a mount, from a repository or from any.
func mounting(from bool, do rt.Action) rt.Action {
	return func(x *rt.Exchange) {
		if q := x.R.URL.Query(); q.Has("mount") && q.Has("from") == from {
			do(x)
			return
		}
		x.Handle()
	}
}

func mounts(from bool, statuses ...int) map[string]func(p *rt.Peer) {
	ways := map[string]func(p *rt.Peer){}
	for _, status := range statuses {
		ways[fmt.Sprint(status)] = func(p *rt.Peer) { p.On("POST", rt.BeginRoute, mounting(from, refusal(status))) }
	}
	return ways
}

// above does something instead of handling a request with more than n bytes.
func above(n int64, do rt.Action) rt.Action {
	return func(x *rt.Exchange) {
		if x.R.ContentLength > n {
			do(x)
			return
		}
		x.Handle()
	}
}

// upTo refuses the chunks of a session after n bytes.
func upTo(n int64) rt.Action {
	return func(x *rt.Exchange) {
		x.Mu.Lock()
		has := int64(len(x.Uploads[x.Ref].Bytes))
		x.Mu.Unlock()
		if has+x.R.ContentLength > n {
			rt.Respond(413)(x)
			return
		}
		x.Handle()
	}
}

// dropChunk reads a chunk, and reports the offset before it.
func dropChunk(status int) rt.Action {
	return func(x *rt.Exchange) {
		_, _ = io.Copy(io.Discard, x.R.Body)
		x.SendProgress(status)
	}
}

// keepByte keeps the first byte of a chunk.
func keepByte(x *rt.Exchange) {
	b, _ := io.ReadAll(x.R.Body)
	x.Mu.Lock()
	x.Uploads[x.Ref].Bytes = append(x.Uploads[x.Ref].Bytes, b[0])
	x.Mu.Unlock()
	x.SendProgress(202)
}

// elsewhere redirects to storage that answers with a status.
func elsewhere(p *rt.Peer, status int) rt.Action {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	p.T.Cleanup(other.Close)
	return rt.Respond(307, "Location", other.URL)
}

// interruptedThen cuts the second chunk, and does something instead of telling the offset.
func interruptedThen(do rt.Action) func(p *rt.Peer) {
	return func(p *rt.Peer) {
		p.Once("PATCH", rt.UploadRoute, rt.CutRequest(1000, true)).After(1)
		p.On("GET", rt.UploadRoute, do)
	}
}

// offset reports the offset in another way, and cuts the second chunk.
func offset(say func(n int) string) func(p *rt.Peer) {
	odd := func(x *rt.Exchange) {
		rec := x.Record()
		x.Mu.Lock()
		if u := x.Uploads[x.Ref]; u != nil {
			rec.Header().Set("Range", say(len(u.Bytes)))
		}
		x.Mu.Unlock()
		x.Replay(rec, nil)
	}
	return func(p *rt.Peer) {
		p.On("PATCH", rt.UploadRoute, odd)
		interruptedThen(odd)(p)
	}
}

// committed stores a blob, and answers with a status.
func committed(status int) func(p *rt.Peer) {
	return func(p *rt.Peer) { p.On("PUT", rt.UploadRoute, withStatus(status)) }
}
