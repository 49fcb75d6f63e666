package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// Child says how a model's process is to be started.
type Child struct {
	Name        string // of the model, with the digest of its manifest
	PrefixCache int64  // bytes of state that it keeps of past requests
	Memory      int64  // bytes of state that its running requests may have together
}

// Options are a server's. Store and Load are needed.
type Options struct {
	Version string // of the program
	Store   *manifest.Store
	// Load starts a model's process and waits until the model is ready, or the context ends.
	Load func(ctx context.Context, c Child, loaded func(part float64)) (pool.Model, error)

	Models    int            // most that are loaded; 0: as many as there is memory for
	Memory    int64          // bytes that all of them may take; 0: what the machine has
	KeepAlive time.Duration  // of idle models; 0: pool.DefaultKeepAlive, pool.Forever: until the room is needed
	Context   int            // tokens of state that a model has room for; 0: by the memory that there is
	CacheSize int64          // bytes of state that a model keeps of past requests; negative: by the memory that there is
	Float32   bool           // models compute in float32
	Draft     runtime.Draft  // of requests that do not say how to draft
	KV        runtime.KVType // how their caches keep keys and values
	Variant   string         // changes with whatever else of Load changes what is loaded

	Host    string   // that it listens on; "": a loopback address
	APIKey  string   // that every request has to bring; "": none
	Hosts   []string // further names that requests may call the server by
	Origins []string // further origins of pages that may ask: scheme://host[:port], * for any

	InsecureRegistries registry.Hosts // that requests may have asked without checks of certificates, or without TLS
	PrivateRegistries  registry.Hosts // that requests may name beside those and public ones

	MaxBody int64                            // bytes of a request; 0: 128 MiB
	Clock   func() time.Time                 // of chat templates; nil: the present
	Log     func(format string, args ...any) // what whoever runs the server should know; may be nil

	patience    time.Duration // in tests: in place of all times for what clients do
	connections int           // in tests: in place of limits.Connections
	keepFree    int64         // in tests: in place of limits.UploadFreeSpace
}

const defaultMaxBody = 128 << 20

// times bound what clients do not do.
type times struct {
	header time.Duration // for the head of a request
	body   time.Duration // for its body
	idle   time.Duration // between requests
	write  time.Duration // for a write that the client does not take
	ping   time.Duration // of silence in a stream, where its API has something to fill it with
	memory time.Duration // for memory to make a prompt
}

func (o Options) times() times {
	if p := o.patience; p > 0 {
		return times{p, p, p, p, p, p}
	}
	return times{10 * time.Second, 2 * time.Minute, 3 * time.Minute, time.Minute, 10 * time.Second, limits.PromptWait * time.Second}
}

var errStopping = errors.New("the server is stopping")

// Server serves models. Its methods may be called from any goroutine.
type Server struct {
	opts     Options
	times    times
	pool     *pool.Pool
	known    known
	guard    guard
	bodies   bodies
	prompts  *promptMemory
	mux      *http.ServeMux
	describe func() ([]byte, error) // makes the OpenAPI document
	metrics  metrics
	http     *http.Server
	stop     context.CancelCauseFunc // ends all requests
	stopping atomic.Bool
	creating chan struct{} // has room for one: who makes a model
	sending  chan struct{} // holds one element for each file that is being uploaded
}

// New makes a server. Close frees it.
func New(o Options) *Server {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Memory <= 0 {
		o.Memory = machineMemory()
	}
	if o.connections <= 0 {
		o.connections = limits.Connections
	}
	if o.keepFree <= 0 {
		o.keepFree = limits.UploadFreeSpace
	}
	s := &Server{opts: o, times: o.times(), guard: newGuard(o), creating: make(chan struct{}, 1)}
	s.sending = make(chan struct{}, limits.UploadsAtOnce)
	s.pool = pool.New(pool.Options{KeepAlive: o.KeepAlive, Models: o.Models, Memory: o.Memory})
	s.bodies.set(max(allBodies*o.MaxBody, leastBodies))
	s.prompts = newPrompts(limits.PromptMemory, s.times.memory)
	s.mux = s.routes()
	s.describe = s.describing()
	base, stop := context.WithCancelCause(context.Background())
	s.stop = stop
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.times.header,
		IdleTimeout:       s.times.idle,
		MaxHeaderBytes:    limits.RequestHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          quiet(),
	}
	return s
}

// Serve answers on a listener until Shutdown or Close; it gives nil then.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(newCounted(l, s.opts.connections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown takes no more requests, waits until those that run have ended or the context does, ends those that are left with an error message,
// and unloads all models.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopping.Store(true)
	if err := s.http.Shutdown(ctx); err != nil {
		s.stop(errStopping)
		last, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		_ = s.http.Shutdown(last)
	}
	s.Close()
}

// lastWords is how long streams have to write why they end.
const lastWords = 2 * time.Second

// Close ends everything at once.
func (s *Server) Close() {
	s.stopping.Store(true)
	s.stop(errStopping)
	_ = s.http.Close()
	s.pool.Close()
}
