package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// slowly is a registry in memory with a virtual clock. It has one image, and serves its blobs as blob says.
type slowly struct {
	manifest []byte
	content  []byte
	head     func(x *slowExchange) *http.Response // for HEAD of the manifest
	document func(x *slowExchange) *http.Response // for the manifest; nil: as it should
	blob     func(x *slowExchange) *http.Response
	mu       sync.Mutex
	requests int // for the blob
	mirrored int // requests to a mirror, which never answers
}

// slowExchange is a request and what its response is made of.
type slowExchange struct {
	*http.Request
	content []byte // of the blob
	start   int    // of the range that is asked for
	end     int
	n       int // requests for the blob before
}

// status is a response without a body.
func (x *slowExchange) status(code int, headers ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: x.Request}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// body is a response with a body that next returns piece by piece.
func (x *slowExchange) body(length int, next func() ([]byte, error)) *http.Response {
	r := x.status(200)
	r.ContentLength = int64(length)
	r.Body = &slowBody{ctx: x.Context(), next: next}
	return r
}

// whole is a response with the whole blob: pieces of a size, with a pause before each.
func (x *slowExchange) whole(size int, pause time.Duration) *http.Response {
	rest := x.content
	return x.body(len(rest), func() ([]byte, error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		n := min(size, len(rest))
		p := rest[:n]
		rest = rest[n:]
		return p, x.sleep(pause)
	})
}

// part is a response with n bytes of what is asked for.
func (x *slowExchange) part(n int) *http.Response {
	end := min(x.start+n, x.end)
	r := x.body(end-x.start, pieces(x.content[x.start:end]))
	if x.Header.Get("Range") != "" {
		r.StatusCode = 206
		r.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", x.start, end-1, len(x.content)))
	}
	return r
}

// pieces returns a body's next that returns these pieces.
func pieces(list ...[]byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		p := list[0]
		list = list[1:]
		return p, nil
	}
}

// sleep waits, unless the client gives up.
func (x *slowExchange) sleep(d time.Duration) error { return remote.Sleep(x.Context(), d) }

type slowBody struct {
	ctx  context.Context
	next func() ([]byte, error)
	left []byte
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		var err error
		if b.left, err = b.next(); err != nil {
			return 0, err
		}
		if b.ctx.Err() != nil {
			return 0, b.ctx.Err()
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *slowBody) Close() error { return nil }

func (s *slowly) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &slowExchange{Request: req, content: s.content}
	count := func(n *int) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		*n++
		return *n - 1
	}
	var r *http.Response
	switch path := req.URL.Path; {
	case req.URL.Host == "mirror.example.com":
		count(&s.mirrored)
		x.sleep(1000 * time.Hour)
	case strings.Contains(path, "/manifests/") && req.Method == "HEAD" && s.head != nil:
		r = s.head(x)
	case strings.Contains(path, "/manifests/") && s.document != nil:
		x.content = s.manifest
		r = s.document(x)
	case strings.Contains(path, "/manifests/"):
		r = x.body(len(s.manifest), pieces(s.manifest))
	case strings.Contains(path, "/blobs/") && !strings.HasSuffix(path, string(digest.FromString("{}"))):
		x.end, x.n = len(x.content), count(&s.requests)
		if n, _ := fmt.Sscanf(req.Header.Get("Range"), "bytes=%d-%d", &x.start, &x.end); n == 2 {
			x.end++
		}
		r = s.blob(x)
	case strings.Contains(path, "/blobs/"):
		r = x.body(2, pieces([]byte("{}")))
	default:
		r = x.status(200)
	}
	if r == nil || req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	return r, nil
}

// slowImage returns a registry with an image whose one layer has this size, and the image's name.
func slowImage(t *testing.T, size int) (*slowly, manifest.Name) {
	t.Helper()
	s := &slowly{content: rt.Noise(3, size)}
	s.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{`+
		`"mediaType":"application/vnd.example","digest":%q,"size":2},"layers":[{"mediaType":"application/vnd.example.file",`+
		`"digest":%q,"size":%d,"annotations":{"org.cncf.model.filepath":"a.bin"}}]}`,
		digest.FromString("{}"), digest.FromBytes(s.content), size)
	n, err := manifest.ParseName("registry.example.com/team/model:v1")
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}
