package cmd_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/registry/hub/hubtest"
	"github.com/ingotml/ingot/registry/registrytest"
)

// fault is a kind of failure that a command survives, or after which the same command does.
type fault string

const (
	serverError fault = "5xx"        // one or two requests fail
	cutOff      fault = "reset"      // the connection of an exchange ends in the middle
	expiry      fault = "expiry"     // tokens and signed addresses are no longer valid
	sizeLimit   fault = "size limit" // from now on, a proxy refuses longer bodies, and cuts longer responses
	processEnd  fault = "kill"
)

var allFaults = []fault{serverError, cutOff, expiry, sizeLimit, processEnd}

// planned is a fault that happens at a tick.
type planned struct {
	fault
	at int
}

// faulty stands before registries and hubs, and lets faults happen to their requests. Its ticks are requests, and reads
// and writes of their bodies, so that a tick is any moment of a transfer.
type faulty struct {
	mu       sync.Mutex
	random   *rand.Rand
	ticks    int
	plan     []planned // by tick
	happened []fault
	kill     func()

	failing    int   // this many requests fail
	limit      int64 // of a body; 0: none
	generation int   // of tokens
	accepted   int   // requests with tokens of this generation
	expired    int   // this many requests of signed addresses fail
	runs       int   // begun so far
	sessions   []session
	undeleted  map[string]int // failures to cancel an upload, by its path
}

// fewest is the number of requests that a token is good for.
const fewest = 5

// session is an upload that a client was told about. It has two tries to cancel it.
type session struct {
	peer *registrytest.Peer
	id   string
}

// begin starts a run with faults. kill kills its process.
func (f *faulty) begin(plan []planned, kill func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ticks, f.plan, f.kill, f.happened, f.runs = 0, plan, kill, nil, f.runs+1
	f.failing, f.limit, f.expired, f.sessions, f.undeleted = 0, 0, 0, nil, map[string]int{}
}

// end ends a run. It returns its ticks, the faults that happened, and the uploads that the client was told about.
func (f *faulty) end() (ticks int, happened []fault, told []session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill, f.plan = nil, nil
	told = slices.DeleteFunc(f.sessions, func(s session) bool { return f.undeleted[s.id] > 1 })
	return f.ticks, f.happened, told
}

// tick counts one moment of an exchange, and lets the faults happen that are planned for it.
func (f *faulty) tick(x *faultyExchange) {
	f.mu.Lock()
	f.ticks++
	var kill func()
	for len(f.plan) > 0 && f.plan[0].at <= f.ticks {
		p := f.plan[0].fault
		if p == expiry && f.generation > 0 && f.accepted < fewest {
			break // a token that nothing accepts is refused, not expired: this fault waits
		}
		f.plan, f.happened = f.plan[1:], append(f.happened, p)
		switch p {
		case serverError:
			f.failing += 1 + f.random.IntN(2)
		case cutOff:
			x.cut = true
		case expiry:
			f.generation, f.accepted = f.generation+1, 0
			f.expired = 1
		case sizeLimit:
			f.limit = 1<<20 + f.random.Int64N(8<<20)
		case processEnd:
			kill = f.kill
		}
	}
	f.mu.Unlock()
	if kill != nil {
		kill()
	}
}

// serverErrors are statuses of servers and proxies that are busy, broken or full.
var serverErrors = []int{500, 502, 503, 504, 507, 520, 522, 524, 529, 530}

// refused responds to a request itself if a fault says so.
func (f *faulty) refused(w http.ResponseWriter, r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failing > 0:
		f.failing--
		if r.Method == http.MethodDelete {
			f.undeleted[path.Base(r.URL.Path)]++
		}
		http.Error(w, "try again", serverErrors[f.random.IntN(len(serverErrors))])
	case f.expired > 0 && r.URL.Query().Has("X-Signature"):
		f.expired--
		w.WriteHeader(http.StatusForbidden)
	case f.limit > 0 && r.ContentLength > f.limit:
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	default:
		if r.URL.Query().Has("X-Signature") {
			f.accepted++
		}
		return false
	}
	return true
}

// around puts the faults before a server.
func (f *faulty) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &faultyExchange{ResponseWriter: w, body: r.Body, f: f}
		f.mu.Lock()
		x.left, x.run = f.limit, f.runs
		f.mu.Unlock()
		r.Body = readCloser{x, r.Body}
		f.tick(x)
		if !x.cut && f.refused(w, r) {
			return
		}
		if !x.cut {
			next.ServeHTTP(x, r)
			f.tick(x)
		}
		if x.cut {
			panic(http.ErrAbortHandler)
		}
		if x.opened != nil {
			f.mu.Lock()
			if x.run == f.runs { // else its process was killed
				f.sessions = append(f.sessions, *x.opened)
			}
			f.mu.Unlock()
		}
	})
}

// faultyExchange is an exchange in which the body and the response may end early.
type faultyExchange struct {
	http.ResponseWriter
	body io.Reader
	f    *faulty
	left int64 // of the response, if there was a limit at the begin
	cut  bool

	run    int      // that it belongs to
	opened *session // by this exchange
}

type readCloser struct {
	io.Reader
	io.Closer
}

func (x *faultyExchange) Read(p []byte) (int, error) {
	n, err := x.body.Read(p)
	if x.f.tick(x); x.cut {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (x *faultyExchange) Write(p []byte) (int, error) {
	x.f.tick(x)
	if x.left > 0 {
		x.left -= int64(len(p))
		x.cut = x.cut || x.left <= 0
	}
	if x.cut {
		return 0, io.ErrClosedPipe
	}
	return x.ResponseWriter.Write(p)
}

// guarded is a registry that gives anybody tokens, which expire.
func (f *faulty) guarded(p *registrytest.Peer) http.Handler {
	return f.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		token := fmt.Sprint("token-", f.generation)
		if r.Header.Get("Authorization") == "Bearer "+token {
			f.accepted++
		}
		f.mu.Unlock()
		switch {
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"token": %q}`, token)
			return
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.ServeHTTP(w, r)
		if x := w.(*faultyExchange); r.Method == http.MethodPost {
			if at := x.Header().Get("Location"); strings.Contains(at, "/blobs/uploads/") {
				at, _, _ = strings.Cut(at, "?")
				x.opened = &session{p, path.Base(at)}
			}
		}
	}))
}

// newFaultyPeer starts a registry behind the faults.
func (f *faulty) newFaultyPeer(t *testing.T) *registrytest.Peer {
	p := registrytest.NewUnstarted(t)
	p.Server.Config.Handler = f.guarded(p)
	p.Server.Start()
	return p
}

// newFaultyHub starts a hub behind the faults.
func (f *faulty) newFaultyHub(t *testing.T) *hubtest.Hub {
	h := hubtest.New()
	h.Set(func(h *hubtest.Hub) { h.Front = f.around })
	t.Cleanup(h.Close)
	return h
}

// draw plans faults within a number of ticks, up to the first that ends the process.
func (f *faulty) draw(faults []fault, ticks int) []planned {
	f.mu.Lock()
	defer f.mu.Unlock()
	const most = 4
	faults = faults[:min(len(faults), most)]
	if i := slices.Index(faults, processEnd); i >= 0 {
		faults = faults[:i+1]
	}
	at := make([]int, len(faults))
	for i := range at {
		at[i] = 1 + f.random.IntN(ticks)
	}
	slices.Sort(at)
	var plan []planned
	for i, name := range faults {
		plan = append(plan, planned{name, at[i]})
	}
	return plan
}

// without returns a list without those of another one, each as often as it is there.
func without[T comparable](all, some []T) []T {
	all = slices.Clone(all)
	for _, s := range some {
		if i := slices.Index(all, s); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

// open tells whether the registry still holds the upload.
func (s session) open() bool { return slices.Contains(s.peer.OpenSessions(), s.id) }
