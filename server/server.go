package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/loglimit"
	turns "github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/divide"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server/budget"
	"github.com/ingotml/ingot/server/guard"
	"github.com/ingotml/ingot/server/holds"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/metrics"
	"github.com/ingotml/ingot/server/openapi"
	"github.com/ingotml/ingot/server/wire"
)

// Child describes a model's process.
type Child struct {
	Name        string // the model's name, with the digest of its manifest
	PrefixCache int64  // size limit of the prefix cache, in bytes
	Memory      int64  // memory limit of the KV caches of running requests, in bytes
	Ranks       int    // that divide the model; 1: it is on this machine alone
}

// Options configure a server. Store and Load are required.
type Options struct {
	Version string // of the program
	Store   *store.Store
	// Load starts a model's process and waits until the model is ready, or the context ends.
	// Its progress goes from 0 to 1.
	Load func(ctx context.Context, c Child, progress func(part float64)) (pool.Model, error)

	// Ranks returns how many ranks divide a model; nil: each is on this machine alone. A divided model stays loaded.
	Ranks    func(*store.Entry) int
	Parallel divide.Mode  // how ranks divide models; "": the better way
	Link     *divide.Link // between ranks; nil: not known
	Regroups bool         // Load can load a divided model again, so it need not stay loaded

	Models     int            // maximum number of loaded models; 0: limited by memory only
	Memory     int64          // memory limit of all models in bytes; 0: the machine's memory
	KeepAlive  time.Duration  // how long idle models stay loaded; 0: pool.DefaultKeepAlive
	Context    int            // tokens of KV cache for a model's running requests; 0: depends on Memory
	ShareCache bool           // requests of all keys continue each other's prompts
	CacheSize  int64          // bytes of a model's prefix cache; negative: depends on Memory
	Float32    bool           // models compute in float32
	Draft      runtime.Draft  // draft depth of requests that do not set one
	KV         runtime.KVType // element type of KV caches
	Variant    string         // identifies everything else in Load that affects a loaded model

	// Certificate returns the TLS certificate of a connection; nil: connections have no TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	Host    string        // the host name that the server listens on; "": a loopback address
	APIKey  string        // required of every request; "": none
	Keys    *keys.Keys    // one of them is required, in place of APIKey
	Hosts   guard.Hosts   // additional Host headers to accept
	Origins guard.Origins // additional origins to accept

	InsecureRegistries address.Hosts // that requests may use without certificate checks or TLS
	PrivateRegistries  address.Hosts // at private addresses that requests may use, in addition to those
	// RegistrySetting returns how a registry is used; nil: all as by default.
	RegistrySetting func(host string) settings.Host

	MaxBody int64                            // limit of a request's body in bytes; 0: 128 MiB
	Clock   func() time.Time                 // for chat templates; nil: time.Now
	Log     func(format string, args ...any) // for the operator; may be nil

	Timeout     time.Duration // of each wait for a client; 0: a time for each
	Connections int           // maximum number of open connections; 0: limits.Connections
	KeepFree    int64         // bytes that uploads leave free on the disk; 0: limits.UploadFreeSpace
}

const defaultMaxBody = 128 << 20

// times are timeouts.
type times struct {
	header time.Duration // to receive a request's header
	body   time.Duration // to receive a request's body
	idle   time.Duration // between a connection's requests
	write  time.Duration // of a write, if the client does not read
	silent time.Duration // without a message of a stream, after which a keep-alive is sent
	memory time.Duration // to wait for memory

	clientIdle time.Duration // for clients that neither send nor read what others wait for
}

func (o Options) times() times {
	if t := o.Timeout; t > 0 {
		return times{t, t, t, t, t, t, t}
	}
	return times{
		header: 10 * time.Second, body: 2 * time.Minute, idle: 3 * time.Minute, write: time.Minute,
		silent: 3 * time.Second, memory: limits.PromptWait * time.Second, clientIdle: limits.ClientIdle * time.Second,
	}
}

// BodyTimeout is the time to receive a request's body, or a step of an upload.
func (s *Server) BodyTimeout() time.Duration { return s.times.body }

// Silence is the time without a message of a stream after which a keep-alive is sent.
func (s *Server) Silence() time.Duration { return s.times.silent }

// Server serves models. It is safe for concurrent use.
type Server struct {
	opts      Options
	log       *loglimit.Log // of opts.Log
	times     times
	pool      *pool.Pool
	cache     modelCache
	holds     holds.Holds
	guard     *guard.Guard
	memory    *budget.Budget // of bodies and answers
	dialects  wire.Dialects
	schemas   openapi.Special
	prompts   *budget.Budget
	gate      *turns.Gate // of renders and encodings
	documents documents
	endpoints []Endpoint
	uploads   []string // method and path prefix of endpoints that receive files
	public    []string // paths that need no key; the page's files need none either
	mux       *http.ServeMux
	openapi   func() ([]byte, error) // returns the OpenAPI document
	metrics   metrics.Metrics
	http      *http.Server
	lifetime  context.Context         // of all requests
	stop      context.CancelCauseFunc // ends it
	work      work
	stopping  atomic.Bool
}

// New returns a server with its common endpoints and those of the APIs. The caller must call Close or Shutdown.
func New(o Options, apis ...func(*Server) API) *Server {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	log := loglimit.New(o.Log)
	o.Log = log.Printf
	if o.Memory <= 0 {
		o.Memory = machineMemory()
	}
	if o.Connections <= 0 {
		o.Connections = limits.Connections
	}
	if o.KeepFree <= 0 {
		o.KeepFree = limits.UploadFreeSpace
	}
	if o.Keys == nil && o.APIKey != "" {
		o.Keys = keys.One(o.APIKey)
	}
	s := &Server{opts: o, log: log, times: o.times(), schemas: openapi.Special{}}
	s.guard = guard.New(guard.Options{Host: o.Host, Hosts: o.Hosts, Origins: o.Origins, Keys: o.Keys})
	s.pool = pool.New(pool.Options{KeepAlive: o.KeepAlive, Models: o.Models, Memory: o.Memory})
	s.memory, s.prompts = requestMemory(o.MaxBody, s.times), promptMemory(s.times)
	s.holds.Store = o.Store
	s.gate = turns.NewGate(0)
	s.work.ready = make(chan struct{})
	defer close(s.work.ready)
	s.work.ctx, s.work.stop = context.WithCancelCause(context.Background())
	s.add(s.common())
	for _, api := range apis {
		s.add(api(s))
	}
	s.mux = s.routes()
	s.openapi = s.openAPIJSON()
	s.lifetime, s.stop = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.times.header,
		IdleTimeout:       s.times.idle,
		MaxHeaderBytes:    limits.RequestHeader,
		BaseContext:       func(net.Listener) context.Context { return s.lifetime },
		ConnContext:       withConnection,
		ErrorLog:          discardLog(),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: limits.Streams},
	}
	if o.Certificate != nil {
		s.http.TLSConfig = &tls.Config{GetCertificate: o.Certificate}
	}
	return s
}

// Options returns the server's options, with defaults applied.
func (s *Server) Options() Options { return s.opts }

// Lifetime returns a context that ends when the server stops, for work that outlives a request.
func (s *Server) Lifetime() context.Context { return s.lifetime }

// Serve accepts connections until Shutdown or Close, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	serve := s.http.Serve
	if s.opts.Certificate != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	err := serve(s.limitConnections(l))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting requests and waits for running ones. When ctx ends, it ends the remaining requests with an
// error message. Finally it unloads all models.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopping.Store(true)
	s.work.stop(wire.ErrStopping) // nobody waits for it, and it goes on when the server runs again
	if err := s.http.Shutdown(ctx); err != nil {
		s.stop(wire.ErrStopping)
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
	s.stop(wire.ErrStopping)
	s.work.stop(wire.ErrStopping)
	s.work.running.Wait()
	_ = s.http.Close()
	s.pool.Close()
	s.log.Close()
}

// work is what a server does without a client that waits for it.
type work struct {
	ready   chan struct{}   // closed when the server is complete
	ctx     context.Context // ends when the server stops
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// Go runs fn in the background. Its context ends when the server stops, which waits for it.
func (s *Server) Go(fn func(ctx context.Context)) {
	s.work.running.Go(func() {
		<-s.work.ready // an API may call Go while the server is being made
		fn(s.work.ctx)
	})
}
