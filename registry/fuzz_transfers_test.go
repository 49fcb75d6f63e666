package registry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/store/disk"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
)

// hostileRegistry answers some requests in the place of a registry.
type hostileRegistry struct {
	runtest.Decisions
	elsewhere string      // another server
	lies      atomic.Bool // reports what it has not done
}

var hostileHeaders = []string{
	"Content-Range", "Range", "Docker-Content-Digest", "Content-Type", "Retry-After", "WWW-Authenticate", "Link",
	"OCI-Chunk-Min-Length", "OCI-Subject", "Content-Encoding", "Location", "Docker-Distribution-Api-Version",
}

// allow lets the registry answer, or answers itself and reports false.
func (h *hostileRegistry) allow(x *rt.Exchange) bool {
	c, turn := h.To(x.R.Method + " " + string(x.Route) + " " + x.Ref)
	if c.N(3) < 2 {
		return true
	}
	for range c.N(3) {
		x.W.Header().Set(hostileHeaders[c.N(len(hostileHeaders))], h.value(c, x, turn))
	}
	switch c.N(5) {
	case 0: // odd headers, and what the registry answers
		return true
	case 1:
		panic(http.ErrAbortHandler)
	case 2: // the answer ends early, or is changed
		rec := x.Record()
		body := slices.Clone(rec.Body.Bytes())
		if at := c.N(256); at < len(body) && h.lies.Load() {
			body[at] ^= 1 << (at % 8)
		} else {
			body = body[:min(at, len(body))]
		}
		x.Replay(rec, body)
		panic(http.ErrAbortHandler)
	}
	statuses := []int{400, 401, 403, 404, 405, 409, 413, 416, 429, 500, 502, 503, 302, 307, 308, 418, 599}
	if h.lies.Load() {
		statuses = append(statuses, 200, 201, 202, 204, 206, 304)
	}
	x.W.WriteHeader(statuses[c.N(len(statuses))])
	_, _ = fmt.Fprint(x.W, c.Pick("", `{"errors":[{"code":"`+c.Pick("DENIED", "BLOB_UPLOAD_UNKNOWN", "TOOMANYREQUESTS",
		"x")+
		`","message":"\u001b[31m`+strings.Repeat("m", 500)+`"}]}`, "<html>", "null", `{"token":"t"}`, string(c.Bytes())))
	return false
}

func (h *hostileRegistry) value(c *runtest.Choices, x *rt.Exchange, turn int) string {
	self := "http://" + x.Host()
	return c.Pick("", "0", "-1", "0-0", "bytes 0-9/10", "bytes 5-2/1", "0-99999999999999999999", "9223372036854775807",
		"x", "gzip",
		"application/json", "sha256:"+strings.Repeat("a", 64), self+x.R.URL.RequestURI(), h.elsewhere+x.R.URL.RequestURI(),
		fmt.Sprint("/v2/team/model/blobs/uploads/upload-", turn), "::", "//", `Basic realm="x"`,
		`Bearer realm="`+h.elsewhere+`/token",service="s",scope="repository:team/model:pull"`,
		`Bearer realm="`+self+`/token"`, `Bearer realm="file:///etc/passwd"`, `<`+x.R.URL.RequestURI()+`>; rel="next"`,
		string(c.Bytes()))
}

// FuzzTransfers: whatever a registry answers, push and pull come to an end after a bounded number of requests. What
// they call done is done, if the registry does not lie. The password goes to its host and to token servers, and no
// error has it.
func FuzzTransfers(f *testing.F) {
	for i := range 24 {
		seed := make([]byte, 48)
		for j := range seed {
			seed[j] = byte(i*41 + j*j*5 + i*j*3)
		}
		f.Add(seed, i%2 == 0)
	}
	f.Setenv(disk.EnvNoSync, "1")
	const password = "5ecr3tPassword"
	var leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok && r.URL.Path != "/token" { // token servers that a registry names get it
			leaked.Store(true)
		}
		_, _ = fmt.Fprint(w, `{"token":"t"}`)
	}))
	f.Cleanup(elsewhere.Close)
	h := &hostileRegistry{elsewhere: elsewhere.URL}
	f.Fuzz(func(t *testing.T, choices []byte, lies bool) {
		h.Begin(nil)
		p := rt.New(t)
		p.Server.Config.ErrorLog = rt.Quiet()
		img := serve(t, p, map[string][]byte{"a": rt.Noise(1, 3000), "b": rt.Noise(2, 150_000), "c": rt.Noise(3, 10)})
		c := newPullClient(t, func(o *Options) {
			o.Connection = remote.Options{Keychain: rt.PasswordKeychain(password, p.Host())}
		})
		pushed := newEmptyStore(t)
		name, want := rt.PutModel(t, pushed, "local/model", 70, 120_000)
		h.lies.Store(lies)
		h.Begin(choices)
		p.Allow = h.allow

		s := newEmptyStore(t)
		started := time.Now()
		if _, err := c.Pull(t.Context(), s, img.name, PullOptions{}); err != nil {
			rt.CheckNoSecrets(t, err, password, "\x1b")
			img.checkAbsent(t, s)
		} else {
			img.checkWhole(t, s)
		}
		_, err := c.Push(t.Context(), pushed, name, p.Name("team/pushed"), PushOptions{})
		if err != nil {
			rt.CheckNoSecrets(t, err, password, "\x1b")
		} else if !lies {
			p.Check("team/pushed", "latest", want)
		}
		if n := h.Requests(); n > 1000 {
			t.Errorf("%d requests", n)
		}
		if took := time.Since(started); took > time.Minute {
			t.Errorf("took %v with %d requests", took, h.Requests())
		}
		if leaked.Load() {
			t.Fatal("the password went to another server")
		}
	})
}
