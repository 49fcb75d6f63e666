// Package pool keeps models loaded for whoever asks next: it loads them when they are asked for, lets them go when nobody has asked
// for a while, and makes room by letting idle ones go first.
//
// Contract: [Pool.Acquire] gives a model that is loaded and stays so until the lease is released. Who ask for one model share one load,
// which goes on as long as one of them waits. A model whose name has come to mean something else, or whose process died, is loaded
// again by the next who asks; leases of the old one stay good as long as it lives. Where there is no room, Acquire waits until leases
// are released, first come first served.
package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// DefaultKeepAlive is how long an idle model stays.
const DefaultKeepAlive = 5 * time.Minute

// Forever keeps an idle model until its room is needed.
const Forever time.Duration = -1

var (
	// ErrTooLarge says that a model alone needs more memory than there is.
	ErrTooLarge = errors.New("the model does not fit into memory")
	// ErrClosed says that the pool was closed.
	ErrClosed = errors.New("the pool of models was closed")
)

// Model is a loaded model that may die: a runner.Runner.
type Model interface {
	runtime.Engine
	Done() <-chan struct{} // closed when it has ended
}

// Source is what a name means now.
type Source struct {
	Name string // of the model, in its canonical form
	Key  string // changes with what is loaded: the manifest's digest and the options
	Size int64  // bytes of memory that it needs
	Load func(ctx context.Context, loaded func(part float64)) (Model, error)
}

// Options are a pool's. The zero value works.
type Options struct {
	KeepAlive time.Duration // of idle models; 0: DefaultKeepAlive, Forever: until the room is needed
	Models    int           // most that are loaded; 0: as many as there is memory for
	Memory    int64         // bytes for all; 0: without limit
}

// Pool is the models that are loaded. Its methods may be called from any goroutine.
type Pool struct {
	opts Options

	mu      sync.Mutex
	models  []*entry  // in order of loading
	waiting []*waiter // for room, in order of arrival
	closed  bool
	unloads sync.WaitGroup // of models that are being unloaded
}

// entry is a model that is loaded, being loaded, or being unloaded.
type entry struct {
	source    Source
	ready     chan struct{} // closed when it is loaded, or failed to
	model     Model         // nil before that, and where it failed
	err       error
	cancel    context.CancelFunc // of the load
	leases    int                // who have it or wait for it
	loaded    float64            // of it is loaded
	keepAlive time.Duration
	lastUsed  time.Time // when the last lease was released
	timer     *time.Timer
	stale     bool // not to be given to anybody else
	unloading bool // being unloaded; its room is not free yet
}

// wait is somebody who waits for room.
type waiter struct {
	retry chan struct{} // one element: it is first in the queue, and something has changed
}

// New makes an empty pool.
func New(o Options) *Pool {
	if o.KeepAlive == 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	return &Pool{opts: o}
}

// Lease is the use of a loaded model.
type Lease struct {
	Model
	pool  *Pool
	entry *entry
	once  sync.Once
}

// Release ends the use. keep is how long the model then stays if nobody else asks for it: nil for the pool's, 0 for not at all.
func (l *Lease) Release(keep *time.Duration) {
	l.once.Do(func() { l.pool.release(l.entry, keep) })
}

// Acquire gives the model that a source describes, loaded. progress may be nil; it gets how much is loaded, 0 to 1.
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

// queue gives the entry of a source with a lease on it, when there is room for it.
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

// claim gives the entry of a source with a lease on it and begins to load it if need be. Where there is no room, or others wait for it
// already, it gives neither entry nor error and puts w into the queue.
func (p *Pool) claim(s Source, w *waiter) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	for _, e := range p.models {
		if e.source.Name != s.Name || e.stale {
			continue
		}
		if e.source.Key == s.Key && !e.dead() {
			e.leases++
			if e.timer != nil {
				e.timer.Stop()
			}
			return e, nil
		}
		p.retire(e)
		break
	}
	if p.opts.Memory > 0 && s.Size > p.opts.Memory {
		return nil, fmt.Errorf("%s needs %d bytes, and models may have %d: %w", s.Name, s.Size, p.opts.Memory, ErrTooLarge)
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

// makeRoom lets idle models go until there is room, and reports whether there is: not before they are gone.
func (p *Pool) makeRoom(size int64) bool {
	var evicted []*entry
	free, count := int64(0), 0
	idle := slices.DeleteFunc(slices.Clone(p.models), func(e *entry) bool { return e.leases > 0 && !e.unloading })
	slices.SortStableFunc(idle, func(a, b *entry) int { return a.lastUsed.Compare(b.lastUsed) })
	enough := func() bool {
		var used int64
		for _, e := range p.models {
			used += e.source.Size
		}
		return (p.opts.Models <= 0 || len(p.models)-count < p.opts.Models) && (p.opts.Memory <= 0 || used-free+size <= p.opts.Memory)
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
	if enough() { // else they would go for nothing
		for _, e := range evicted {
			p.retire(e)
		}
	}
	return false
}

// retire takes an entry out of use, and unloads it as soon as nobody has it.
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
			_ = e.model.Close() // an error means that it is gone already
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.models = slices.DeleteFunc(p.models, func(m *entry) bool { return m == e })
		p.wake()
	}()
}

// wake lets the first who waits for room try again.
func (p *Pool) wake() {
	if len(p.waiting) == 0 {
		return
	}
	select {
	case p.waiting[0].retry <- struct{}{}:
	default:
	}
}

// leave takes somebody out of the queue, who need not be in it.
func (p *Pool) dequeue(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(x *waiter) bool { return x == w })
	p.wake()
}

// load runs beside those who wait for it.
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
		e.stale = true
	}
	close(e.ready)
	p.mu.Unlock()
	if err != nil {
		return
	}
	go func() { // a model that dies makes room
		<-m.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retire(e)
	}()
}

// How often somebody who waits for a load is told how far it is.
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
	default: // nobody waits for the load any more
		p.retire(e)
		return
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

// Info is what a pool tells of a model.
type Info struct {
	Name    string
	Key     string
	Size    int64
	Loaded  float64   // 1 when it is ready
	Leases  int       // requests at work or waiting for it
	Expires time.Time // when it goes if nobody asks for it; zero while somebody uses it, and for ever
	Model   Model     // nil while it loads
}

// List tells of the models that are loaded or being loaded, in that order of time.
func (p *Pool) List() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Info
	for _, e := range p.models {
		if e.stale {
			continue
		}
		i := Info{Name: e.source.Name, Key: e.source.Key, Size: e.source.Size, Loaded: e.loaded, Leases: e.leases, Model: e.model}
		if e.leases == 0 && e.keepAlive > 0 {
			i.Expires = e.lastUsed.Add(e.keepAlive)
		}
		list = append(list, i)
	}
	return list
}

// Stop lets a model go as soon as nobody uses it, and reports whether there was one by that name.
func (p *Pool) Stop(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.models {
		if e.source.Name == name && !e.stale {
			p.retire(e)
			return true
		}
	}
	return false
}

// Close lets all models go and waits until they are gone, also those that are in use: their requests end with an error.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, e := range slices.Clone(p.models) {
		e.leases = 0
		p.retire(e)
	}
	for _, w := range p.waiting {
		select {
		case w.retry <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	p.unloads.Wait()
}
