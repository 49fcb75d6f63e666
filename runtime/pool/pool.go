// Package pool keeps models loaded between requests: it loads a model on demand, unloads it when it has been idle for a
// while, and unloads idle models early when it needs room.
//
// Contract: [Pool.Acquire] returns a model that stays loaded until the lease is released. Concurrent callers that ask
// for the same model share one load, which is canceled when none of them waits any more. If a name is re-created or
// pulled again, or the model's process dies, the next caller loads the new model; existing leases keep the old one
// while it lives. If there is no room, Acquire waits until leases are released, first come, first served.
package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/runtime"
)

// DefaultKeepAlive is how long an idle model stays loaded.
const DefaultKeepAlive = 5 * time.Minute

// Forever keeps an idle model loaded until its room is needed.
const Forever time.Duration = -1

var (
	// ErrTooLarge reports a model that needs more memory than the pool has.
	ErrTooLarge = errors.New("the model does not fit into memory")
	// ErrClosed reports that the pool was closed.
	ErrClosed = fault.Register(errors.New("the pool of models was closed"), fault.Kind{
		Name: "runtime/pool.ErrClosed", Means: "the pool of models was closed",
		Rank: fault.Stopping + 2, Status: fault.Unavailable,
	})
)

// Model is a loaded model that may die, such as a runner.Runner.
type Model interface {
	runtime.Engine
	Done() <-chan struct{} // closed when the model has ended
}

// Source describes the model that a name currently stands for.
type Source struct {
	Name string // canonical name of the model
	Key  string // changes with the model: the manifest's digest and the options
	Size int64  // bytes of memory that the model needs
	Load func(ctx context.Context, loaded func(part float64)) (Model, error)
	// Stays keeps a loaded model until it is stopped, ends by itself or is replaced: it does not become idle, and makes
	// no room for others.
	Stays bool
}

// Options configures a pool. The zero value is valid.
type Options struct {
	KeepAlive time.Duration // of idle models; 0: DefaultKeepAlive
	Models    int           // most models to keep loaded; 0: as many as fit into memory
	Memory    int64         // bytes for all models; 0: no limit
}

// Pool holds the loaded models. Its methods are safe for concurrent use.
type Pool struct {
	opts Options

	mu      sync.Mutex
	models  []*entry  // in order of loading
	waiting []*waiter // for room, in order of arrival
	closed  bool
	unloads sync.WaitGroup // in progress
}

// entry is a model that is loading, loaded or unloading.
type entry struct {
	source    Source
	ready     chan struct{} // closed when the load has succeeded or failed
	model     Model         // nil until loaded
	err       error
	cancel    context.CancelFunc // of the load
	leases    int                // callers that use the model or wait for it
	loaded    float64            // progress of the load, 0 to 1
	keepAlive time.Duration
	lastUsed  time.Time // when the last lease was released
	timer     *time.Timer
	stale     bool // unloads when it is idle, and is not given to further callers unless it is replaced
	replaced  bool // stale because its name stood for another model
	unloading bool // still occupies its room
}

// waiter is a caller that waits for room.
type waiter struct {
	retry chan struct{} // signals the first waiter that something has changed; capacity 1
}

// New returns an empty pool.
func New(o Options) *Pool {
	if o.KeepAlive == 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	return &Pool{opts: o}
}

// Lease keeps a model loaded while it is in use.
type Lease struct {
	Model
	pool  *Pool
	entry *entry
	once  sync.Once
}

// Release ends the lease. keep is how long the model stays loaded afterwards: nil means the pool's default, 0 not at
// all.
func (l *Lease) Release(keep *time.Duration) {
	l.once.Do(func() { l.pool.release(l.entry, keep) })
}

// Acquire returns the model that a source describes, and loads it if needed. progress is called with the progress of
// the load, 0 to 1; it may be nil.
func (p *Pool) Acquire(ctx context.Context, s Source, progress func(part float64)) (*Lease, error) {
	e, err := p.acquireEntry(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx, e, progress); err != nil {
		p.release(e, nil)
		return nil, err
	}
	return &Lease{Model: e.model, pool: p, entry: e}, nil
}

// acquireEntry returns the entry of a source with a lease on it, as soon as there is room.
func (p *Pool) acquireEntry(ctx context.Context, s Source) (*entry, error) {
	w := &waiter{make(chan struct{}, 1)}
	defer p.dequeue(w)
	for {
		e, err := p.claim(s, w)
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-w.retry:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// claim returns the entry of a source with a lease on it, and starts to load the model if needed. If there is no room,
// or other callers already wait for room, it returns neither an entry nor an error, and adds w to the queue.
func (p *Pool) claim(s Source, w *waiter) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if e := p.usable(s); e != nil {
		e.leases++
		if e.timer != nil {
			e.timer.Stop()
		}
		return e, nil
	}
	for _, e := range p.models {
		if e.source.Name == s.Name && !e.stale {
			p.retire(e)
			e.replaced = !e.dead()
		}
	}
	if p.opts.Memory > 0 && s.Size > p.opts.Memory-p.staying() {
		return nil, fmt.Errorf("%s needs %d bytes, and models may have %d: %w", s.Name, s.Size, p.opts.Memory-p.staying(),
			ErrTooLarge)
	}
	if !slices.Contains(p.waiting, w) {
		p.waiting = append(p.waiting, w)
	}
	if p.waiting[0] != w || !p.makeRoom(s.Size) {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &entry{source: s, ready: make(chan struct{}), cancel: cancel, leases: 1, keepAlive: p.opts.KeepAlive}
	p.models = append(p.models, e)
	go p.load(ctx, e)
	return e, nil
}

// usable returns the entry of a source that a further caller may use, or nil. A caller that has resolved the name
// before it was moved gets the replaced model while that is in use, and does not replace the newer one.
func (p *Pool) usable(s Source) *entry {
	for _, e := range p.models {
		if e.source.Name == s.Name && e.source.Key == s.Key && !e.dead() && !e.unloading && (!e.stale || e.replaced) {
			return e
		}
	}
	return nil
}

// staying returns the size of the models that stay.
func (p *Pool) staying() (n int64) {
	for _, e := range p.models {
		if e.source.Stays && !e.stale {
			n += e.source.Size
		}
	}
	return n
}

// dead reports whether a loaded model has ended by itself.
func (e *entry) dead() bool {
	if e.model == nil {
		return false
	}
	select {
	case <-e.model.Done():
		return true
	default:
		return false
	}
}

// makeRoom reports whether there is room for a model. If not, it starts to unload idle models, least recently used
// first, if that will make enough room.
func (p *Pool) makeRoom(size int64) bool {
	var evicted []*entry
	free, count := int64(0), 0
	idle := slices.DeleteFunc(slices.Clone(p.models), func(e *entry) bool {
		return (e.leases > 0 || e.source.Stays) && !e.unloading
	})
	slices.SortStableFunc(idle, func(a, b *entry) int { return a.lastUsed.Compare(b.lastUsed) })
	enough := func() bool {
		var used int64
		for _, e := range p.models {
			used += e.source.Size
		}
		return (p.opts.Models <= 0 || len(p.models)-count < p.opts.Models) &&
			(p.opts.Memory <= 0 || used-free+size <= p.opts.Memory)
	}
	if enough() {
		return true
	}
	for _, e := range idle {
		if enough() {
			break
		}
		free, count = free+e.source.Size, count+1
		if !e.unloading {
			evicted = append(evicted, e)
		}
	}
	if enough() { // else unloading them would not help
		for _, e := range evicted {
			p.retire(e)
		}
	}
	return false
}

// retire marks an entry as stale, and unloads it when it has no leases.
func (p *Pool) retire(e *entry) {
	e.stale = true
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.leases > 0 || e.unloading {
		return
	}
	e.unloading = true
	p.unloads.Add(1)
	go func() {
		defer p.unloads.Done()
		e.cancel()
		<-e.ready
		if e.model != nil {
			_ = e.model.Close() // an error means that the model has ended already
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.models = slices.DeleteFunc(p.models, func(m *entry) bool { return m == e })
		p.wake()
	}()
}

// Waiting returns how many callers wait for room.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// wake makes the first waiter try again.
func (p *Pool) wake() {
	if len(p.waiting) == 0 {
		return
	}
	select {
	case p.waiting[0].retry <- struct{}{}:
	default:
	}
}

// dequeue removes a waiter from the queue, if it is in it.
func (p *Pool) dequeue(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(x *waiter) bool { return x == w })
	p.wake()
}

// load loads a model in its own goroutine.
func (p *Pool) load(ctx context.Context, e *entry) {
	m, err := e.source.Load(ctx, func(part float64) {
		p.mu.Lock()
		e.loaded = part
		p.mu.Unlock()
	})
	p.mu.Lock()
	e.model, e.err = m, err
	if err == nil {
		e.loaded = 1
	} else {
		e.stale, e.replaced = true, false
	}
	close(e.ready)
	p.mu.Unlock()
	if err != nil {
		return
	}
	go func() { // unload a model that dies
		<-m.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retire(e)
	}()
}

// progressEvery is the interval between progress reports of a load.
const progressEvery = 100 * time.Millisecond

func (p *Pool) await(ctx context.Context, e *entry, progress func(float64)) error {
	var tick <-chan time.Time
	if progress != nil {
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-e.ready:
			return e.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick:
			p.mu.Lock()
			part := e.loaded
			p.mu.Unlock()
			progress(part)
		}
	}
}

func (p *Pool) release(e *entry, keep *time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if keep != nil {
		e.keepAlive = *keep
	}
	e.lastUsed = time.Now()
	if e.leases--; e.leases > 0 {
		return
	}
	select {
	case <-e.ready:
	default: // still loading, but nobody waits for it any more
		p.retire(e)
		return
	}
	if e.source.Stays {
		e.keepAlive = Forever
	}
	if e.stale || p.closed || e.keepAlive == 0 {
		p.retire(e)
		return
	}
	if e.keepAlive > 0 {
		e.timer = time.AfterFunc(e.keepAlive, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.leases == 0 && !e.stale {
				p.retire(e)
			}
		})
	}
	p.wake()
}
