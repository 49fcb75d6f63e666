package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// Child describes a model's process.
type Child struct {
	Name        string // the model's name, with the digest of its manifest
	PrefixCache int64  // size limit of the prefix cache, in bytes
	Memory      int64  // memory limit of the KV caches of running requests, in bytes
}

// Options configure a server. Store and Load are required.
type Options struct {
	Version string // of the program
	Store   *store.Store
	// Load starts a model's process and waits until the model is ready, or the context ends.
	// Its progress goes from 0 to 1.
	Load func(ctx context.Context, c Child, progress func(part float64)) (pool.Model, error)

	Models    int            // maximum number of loaded models; 0: limited by memory only
	Memory    int64          // memory limit of all models in bytes; 0: the machine's memory
	KeepAlive time.Duration  // how long idle models stay loaded; 0: pool.DefaultKeepAlive
	Context   int            // tokens of KV cache for a model's running requests; 0: depends on Memory
	CacheSize int64          // bytes of a model's prefix cache; negative: depends on Memory
	Float32   bool           // models compute in float32
	Draft     runtime.Draft  // draft depth of requests that do not set one
	KV        runtime.KVType // element type of KV caches
	Variant   string         // identifies everything else in Load that affects a loaded model

	Host    string   // the host name that the server listens on; "": a loopback address
	APIKey  string   // required of every request; "": none
	Hosts   []string // additional Host headers to accept
	Origins []string // additional origins to accept: scheme://host[:port]; *: any

	InsecureRegistries registry.Hosts // that requests may use without certificate checks or TLS
	PrivateRegistries  registry.Hosts // at private addresses that requests may use, in addition to those

	MaxBody int64                            // limit of a request's body in bytes; 0: 128 MiB
	Clock   func() time.Time                 // for chat templates; nil: time.Now
	Log     func(format string, args ...any) // for the operator; may be nil

	clientTimeout time.Duration // for tests: replaces all of times
	connections   int           // for tests: replaces limits.Connections
	keepFree      int64         // for tests: replaces limits.UploadFreeSpace
}

const defaultMaxBody = 128 << 20

// times are timeouts.
type times struct {
	header time.Duration // to receive a request's header
	body   time.Duration // to receive a request's body
	idle   time.Duration // between a connection's requests
	write  time.Duration // of a write, if the client does not read
	ping   time.Duration // without an event in a stream, after which a ping is sent
	memory time.Duration // to wait for memory to build a prompt
}

func (o Options) times() times {
	if t := o.clientTimeout; t > 0 {
		return times{t, t, t, t, t, t}
	}
	return times{
		header: 10 * time.Second, body: 2 * time.Minute, idle: 3 * time.Minute, write: time.Minute,
		ping: 10 * time.Second, memory: limits.PromptWait * time.Second,
	}
}

var errStopping = errors.New("the server is stopping")

// Server serves models. It is safe for concurrent use.
type Server struct {
	opts     Options
	times    times
	pool     *pool.Pool
	cache    modelCache
	guard    guard
	bodies   bodies
	prompts  *promptMemory
	mux      *http.ServeMux
	openapi  func() ([]byte, error) // returns the OpenAPI document
	metrics  metrics
	http     *http.Server
	stop     context.CancelCauseFunc // cancels all requests
	stopping atomic.Bool

	buildSlot   chan struct{} // buffered, one element: a build is running
	uploadSlots chan struct{} // buffered: an element for each running upload
}

// New returns a server. The caller must call Close or Shutdown.
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
	s := &Server{opts: o, times: o.times(), guard: newGuard(o), buildSlot: make(chan struct{}, 1)}
	s.uploadSlots = make(chan struct{}, limits.UploadsAtOnce)
	s.pool = pool.New(pool.Options{KeepAlive: o.KeepAlive, Models: o.Models, Memory: o.Memory})
	s.bodies.set(max(allBodies*o.MaxBody, leastBodies))
	s.prompts = newPrompts(limits.PromptMemory, s.times.memory)
	s.mux = s.routes()
	s.openapi = s.openAPIJSON()
	base, stop := context.WithCancelCause(context.Background())
	s.stop = stop
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.times.header,
		IdleTimeout:       s.times.idle,
		MaxHeaderBytes:    limits.RequestHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          discardLog(),
	}
	return s
}

// Serve accepts connections until Shutdown or Close, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(limitConnections(l, s.opts.connections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting requests and waits for running ones. When ctx ends, it ends the remaining requests with an
// error message. Finally it unloads all models.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopping.Store(true)
	if err := s.http.Shutdown(ctx); err != nil {
		s.stop(errStopping)
		last, cancel := context.WithTimeout(context.Background(), finalWrite)
		defer cancel()
		_ = s.http.Shutdown(last)
	}
	s.Close()
}

// finalWrite is the time for streams to write their error message.
const finalWrite = 2 * time.Second

// Close ends all requests and unloads all models at once.
func (s *Server) Close() {
	s.stopping.Store(true)
	s.stop(errStopping)
	_ = s.http.Close()
	s.pool.Close()
}
