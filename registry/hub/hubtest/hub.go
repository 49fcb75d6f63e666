package hubtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Hub is a running fake. Set its fields before the first request, or under [Hub.Set].
type Hub struct {
	Token    string        // that gated repositories require
	Signed   time.Duration // for which a signed address is valid; 0 = an hour
	PageSize int           // entries of a page of the tree; 0 = 1000
	Limit    int           // requests for files before 429; 0 = none
	Wait     string        // Retry-After of 429; "" = a RateLimit header instead
	Faults   Faults

	Latency   time.Duration // of each request
	Bandwidth int64         // of all bodies together, in bytes per second; 0 = unlimited

	Front func(next http.Handler) http.Handler // what requests pass first; nil = nothing

	home, cdn *httptest.Server
	secret    []byte

	mu           sync.Mutex
	repositories map[string]*Repository
	random       *rand.Rand
	requests     []Request
	resolved     map[string]int
	sent         int64
	free         time.Time // when the shared line is free again
}

// Faults are injected at random.
type Faults struct {
	Share float64 // of requests
	Seed  uint64
	Kinds []Fault // nil = all that a client can survive
}

// Fault is a kind of failure.
type Fault int

// Kinds of failures.
const (
	ServerError Fault = iota // 500, 502 or 503
	TooMany                  // 429 with Retry-After: 0
	Reset                    // the connection ends before the response
	Short                    // the body ends early
	Stalled                  // the body stops
	Expired                  // 403 of a signed address, which was valid a moment ago
)

// Request is what the fake was asked.
type Request struct {
	Method, Path, Query, Range string
	Authorization              string
	CDN                        bool
}

// New starts a fake. The caller closes it.
func New() *Hub {
	h := &Hub{
		repositories: map[string]*Repository{}, resolved: map[string]int{}, secret: []byte("signs addresses"),
		random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // a test
	}
	h.home = httptest.NewServer(h.around(false, http.HandlerFunc(h.serveHome)))
	h.cdn = httptest.NewServer(h.around(true, http.HandlerFunc(h.serveCDN)))
	return h
}

// Close stops the fake.
func (h *Hub) Close() {
	h.home.CloseClientConnections()
	h.cdn.CloseClientConnections()
	h.home.Close()
	h.cdn.Close()
}

// URL returns the endpoint.
func (h *Hub) URL() string { return h.home.URL }

// CDN returns the address that large files are redirected to.
func (h *Hub) CDN() string { return h.cdn.URL }

// Set changes fields while the fake runs.
func (h *Hub) Set(change func(h *Hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
	h.random = rand.New(rand.NewPCG(h.Faults.Seed, 2)) //nolint:gosec // a test
}

// Requests returns what was asked so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.requests...)
}

// Resolved returns how often each file was resolved, by path.
func (h *Hub) Resolved() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for k, v := range h.resolved {
		out[k] = v
	}
	return out
}

// Sent returns the bytes of all bodies so far.
func (h *Hub) Sent() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent
}

// Secrets lists what no log, error or record may contain: the token, and parts of signed addresses.
func (h *Hub) Secrets() []string {
	list := []string{"X-Signature", "X-Expires", strings.TrimPrefix(h.CDN(), "http://")}
	if h.Token != "" {
		list = append(list, h.Token)
	}
	return list
}

// around logs a request, delays it and injects faults.
func (h *Hub) around(cdn bool, next http.Handler) http.Handler {
	passed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, Request{
			r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Range"), r.Header.Get("Authorization"), cdn,
		})
		fault, wrong := h.fault(cdn)
		latency := h.Latency
		h.mu.Unlock()
		time.Sleep(latency)
		out := &limited{ResponseWriter: w, h: h, left: 1 << 62}
		if !wrong {
			next.ServeHTTP(out, r)
			return
		}
		switch fault {
		case ServerError:
			http.Error(w, "try again", []int{500, 502, 503}[len(r.Header.Get("Range"))%3])
		case TooMany:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case Reset:
			panic(http.ErrAbortHandler)
		case Expired:
			w.WriteHeader(http.StatusForbidden)
		case Short, Stalled:
			out.left, out.stall = 100, fault == Stalled
			out.ended = r.Context().Done()
			next.ServeHTTP(out, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		front := h.Front
		h.mu.Unlock()
		if front == nil {
			passed.ServeHTTP(w, r)
			return
		}
		front(passed).ServeHTTP(w, r)
	})
}

// fault draws whether a request fails, and how. The caller holds the lock.
func (h *Hub) fault(cdn bool) (Fault, bool) {
	if h.Faults.Share == 0 || h.random.Float64() >= h.Faults.Share {
		return 0, false
	}
	kinds := h.Faults.Kinds
	if kinds == nil {
		kinds = []Fault{ServerError, TooMany, Reset, Short, Stalled, Expired}
	}
	fault := kinds[h.random.IntN(len(kinds))]
	return fault, cdn || fault != Expired
}

// limited is a response over a shared line, whose body may end early.
type limited struct {
	http.ResponseWriter
	h     *Hub
	left  int64
	stall bool
	ended <-chan struct{}
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		n, _ := l.ResponseWriter.Write(p[:l.left])
		l.left -= int64(n)
		if f, ok := l.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		if l.stall {
			<-l.ended
		}
		panic(http.ErrAbortHandler)
	}
	l.left -= int64(len(p))
	l.h.transmit(len(p))
	return l.ResponseWriter.Write(p)
}

// burst is how long a shared line may have been idle without losing bandwidth. It covers a process that wakes up late.
const burst = 100 * time.Millisecond

// ReadFrom lets the system send a file by itself if nothing limits the line.
func (l *limited) ReadFrom(r io.Reader) (int64, error) {
	l.h.mu.Lock()
	unlimited := l.h.Bandwidth == 0 && l.left == 1<<62
	l.h.mu.Unlock()
	from, ok := l.ResponseWriter.(io.ReaderFrom)
	if !unlimited || !ok {
		return io.Copy(struct{ io.Writer }{l}, r)
	}
	n, err := from.ReadFrom(r)
	l.h.transmit(int(n))
	return n, err
}

// transmit waits until the shared line has sent n bytes.
func (h *Hub) transmit(n int) {
	h.mu.Lock()
	h.sent += int64(n)
	if h.Bandwidth == 0 {
		h.mu.Unlock()
		return
	}
	if earliest := time.Now().Add(-burst); h.free.Before(earliest) {
		h.free = earliest
	}
	h.free = h.free.Add(time.Duration(int64(n) * int64(time.Second) / h.Bandwidth))
	at := h.free
	h.mu.Unlock()
	time.Sleep(time.Until(at))
}

// sign returns the query of a signed address.
func (h *Hub) sign(path string, until time.Time) string {
	expires := fmt.Sprint(until.UnixMilli())
	mac := hmac.New(sha256.New, h.secret)
	fmt.Fprintf(mac, "%s %s", path, expires)
	return "X-Expires=" + expires + "&X-Signature=" + hex.EncodeToString(mac.Sum(nil))
}
