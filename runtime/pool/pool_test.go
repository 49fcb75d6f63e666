package pool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// world counts the loaded models.
type world struct {
	mu     sync.Mutex
	loads  []string
	loaded map[string]int
	size   int64 // of all loaded models, now and at most
	most   int64
}

type model struct {
	w    *world
	name string
	size int64
	once sync.Once
	done chan struct{}
}

func (m *model) Generate(context.Context, runtime.Request) iter.Seq2[runtime.Event, error] {
	return nil
}
func (m *model) Done() <-chan struct{} { return m.done }

func (m *model) Close() error {
	time.Sleep(10 * time.Millisecond)
	m.die()
	return nil
}

func (m *model) die() {
	m.once.Do(func() {
		m.w.mu.Lock()
		m.w.loaded[m.name]--
		m.w.size -= m.size
		m.w.mu.Unlock()
		close(m.done)
	})
}

var errBroken = errors.New("broken")

func (w *world) source(name, key string, size int64) Source {
	return Source{Name: name, Key: key, Size: size, Load: func(ctx context.Context, loaded func(float64)) (Model, error) {
		for i := range 10 {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			loaded(float64(i+1) / 10)
		}
		if strings.HasPrefix(key, "broken") {
			return nil, errBroken
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.loads = append(w.loads, name+"@"+key)
		w.loaded[name]++
		w.size += size
		w.most = max(w.most, w.size)
		return &model{w: w, name: name, size: size, done: make(chan struct{})}, nil
	}}
}

// in runs a test with a fake clock.
func in(t *testing.T, o Options, fn func(t *testing.T, p *Pool, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, w := New(o), &world{loaded: map[string]int{}}
		fn(t, p, w)
		p.Close()
		synctest.Wait()
		if w.size != 0 {
			t.Errorf("after Close: %d bytes of models are left: %v", w.size, w.loaded)
		}
		if _, err := p.Acquire(t.Context(), w.source("late", "1", 1), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed pool returned %v", err)
		}
	})
}

func acquire(t *testing.T, p *Pool, s Source) *Lease {
	t.Helper()
	l, err := p.Acquire(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A model that stays is not unloaded when it is idle, by what a request says or to make room, but when it is stopped.
func TestStays(t *testing.T) {
	in(t, Options{Memory: 10}, func(t *testing.T, p *Pool, w *world) {
		s := w.source("divided", "1", 6)
		s.Stays = true
		acquire(t, p, s).Release(new(time.Duration))
		acquire(t, p, w.source("a", "1", 4)).Release(nil)
		time.Sleep(2 * DefaultKeepAlive)
		synctest.Wait()
		if w.now("divided") != 1 || w.now("a") != 0 {
			t.Errorf("loaded: %v", w.loaded)
		}
		if _, err := p.Acquire(t.Context(), w.source("b", "1", 5), nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a model that does not fit beside it: %v", err)
		}
		if !p.Stop("divided") {
			t.Error("it cannot be stopped")
		}
		acquire(t, p, w.source("b", "1", 5)).Release(nil)
		if w.now("divided") != 0 || w.now("b") != 1 {
			t.Errorf("loaded after the stop: %v", w.loaded)
		}
	})
}

func (w *world) now(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loaded[name]
}

func (w *world) wantLoads(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.loads, want) {
		t.Errorf("loaded %v, want %v", w.loads, want)
	}
}

func names(p *Pool) (list []string) {
	for _, i := range p.List() {
		list = append(list, i.Name)
	}
	return list
}

func TestKeepAlive(t *testing.T) {
	in(t, Options{}, func(t *testing.T, p *Pool, w *world) {
		s := w.source("a", "1", 10)
		l := acquire(t, p, s)
		time.Sleep(time.Hour)
		l.Release(nil)
		l.Release(nil) // a second call has no effect
		time.Sleep(DefaultKeepAlive - time.Second)
		acquire(t, p, s).Release(nil)
		time.Sleep(DefaultKeepAlive - time.Second)
		if got := names(p); !slices.Equal(got, []string{"a"}) {
			t.Errorf("before it expires: %v", got)
		}
		if i := p.List()[0]; i.Loaded != 1 || i.Leases != 0 || time.Until(i.Expires) != time.Second {
			t.Errorf("%+v", i)
		}
		time.Sleep(2 * time.Second)
		if got := names(p); got != nil || w.now("a") != 0 {
			t.Errorf("after it expires: %v", got)
		}
		now, ever := time.Duration(0), Forever
		acquire(t, p, s).Release(&now)
		time.Sleep(time.Second)
		if w.now("a") != 0 {
			t.Error("a model that was not to stay is there")
		}
		acquire(t, p, s).Release(&ever)
		time.Sleep(1000 * time.Hour)
		w.wantLoads(t, "a@1", "a@1", "a@1")
		if w.now("a") != 1 || !p.Stop("a") || p.Stop("a") {
			t.Error("a model that was to stay is not there")
		}
	})
}

func TestOneLoadForAll(t *testing.T) {
	in(t, Options{}, func(t *testing.T, p *Pool, w *world) {
		var parts []float64
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*250*time.Millisecond)
				defer cancel()
				l, err := p.Acquire(ctx, w.source("a", "1", 10), func(part float64) {
					if i == 4 {
						parts = append(parts, part)
					}
				})
				if i < 3 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d: %v", i, err)
				}
				if err == nil {
					l.Release(nil)
				}
			})
		}
		wg.Wait()
		w.wantLoads(t, "a@1")
		if len(parts) < 5 || !slices.IsSorted(parts) {
			t.Errorf("progress %v", parts)
		}
	})
}

// A load ends when nobody waits for it any more.
func TestAbandonedLoad(t *testing.T) {
	in(t, Options{}, func(t *testing.T, p *Pool, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := p.Acquire(ctx, w.source("a", "1", 10), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.wantLoads(t)
		if got := names(p); got != nil {
			t.Errorf("there is %v", got)
		}
	})
}

func TestFailedLoad(t *testing.T) {
	in(t, Options{Models: 1}, func(t *testing.T, p *Pool, w *world) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := p.Acquire(t.Context(), w.source("a", "broken", 10), nil); !errors.Is(err, errBroken) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		acquire(t, p, w.source("a", "2", 10)).Release(nil)
		w.wantLoads(t, "a@2")
	})
}

// A name that is re-created is loaded again; leases of the old model stay valid.
func TestChangedModel(t *testing.T) {
	in(t, Options{}, func(t *testing.T, p *Pool, w *world) {
		old := acquire(t, p, w.source("a", "1", 10))
		acquire(t, p, w.source("a", "2", 10)).Release(nil)
		w.wantLoads(t, "a@1", "a@2")
		select {
		case <-old.Done():
			t.Error("the old one is gone while it is used")
		default:
		}
		old.Release(nil)
		time.Sleep(time.Second)
		if w.now("a") != 1 || len(p.List()) != 1 || p.List()[0].Key != "2" {
			t.Errorf("%d are loaded: %+v", w.now("a"), p.List())
		}
	})
}

// A model that died is loaded again by the next caller.
func TestDeadModel(t *testing.T) {
	in(t, Options{}, func(t *testing.T, p *Pool, w *world) {
		l := acquire(t, p, w.source("a", "1", 10))
		l.Model.(*model).die()
		next := acquire(t, p, w.source("a", "1", 10))
		l.Release(nil)
		next.Release(nil)
		w.wantLoads(t, "a@1", "a@1")
	})
}

func TestRoom(t *testing.T) {
	in(t, Options{Memory: 100}, func(t *testing.T, p *Pool, w *world) {
		acquire(t, p, w.source("a", "1", 40)).Release(nil)
		time.Sleep(time.Second)
		acquire(t, p, w.source("b", "1", 40)).Release(nil)
		time.Sleep(time.Second)
		acquire(t, p, w.source("a", "1", 40)).Release(nil)
		c := acquire(t, p, w.source("c", "1", 30)) // b was least recently used
		if got := names(p); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("after making room there is %v", got)
		}
		if _, err := p.Acquire(t.Context(), w.source("d", "1", 101), nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a model that can never fit: %v", err)
		}
		// While c is in use, a large model has to wait. A waiter may give up; the others still get their turn.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.Acquire(ctx, w.source("e", "1", 90), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a model that does not fit now: %v", err)
		}
		if got := names(p); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("models were unloaded in vain: %v is left", got)
		}
		time.AfterFunc(time.Hour, func() { c.Release(nil) })
		begun := time.Now()
		acquire(t, p, w.source("e", "1", 90)).Release(nil)
		if d := time.Since(begun); d < time.Hour || d > time.Hour+5*time.Second {
			t.Errorf("it waited %v", d)
		}
		if w.most > 100 {
			t.Errorf("%d bytes were loaded at once", w.most)
		}
	})
}

// Callers get room in order of arrival, except for models that are loaded already.
func TestQueue(t *testing.T) {
	in(t, Options{Models: 1}, func(t *testing.T, p *Pool, w *world) {
		a := acquire(t, p, w.source("a", "1", 1))
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, name := range []string{"b", "c", "d", "b"} {
			time.Sleep(time.Second)
			wg.Go(func() {
				l := acquire(t, p, w.source(name, "1", 1))
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Minute)
				l.Release(nil)
			})
		}
		time.Sleep(time.Second)
		acquire(t, p, w.source("a", "1", 1)).Release(nil) // does not queue
		a.Release(nil)
		wg.Wait()
		if want := []string{"b", "b", "c", "d"}; !slices.Equal(order, want) &&
			!slices.Equal(order, []string{"b", "c", "d", "b"}) {
			t.Errorf("the order was %v, want %v", order, want)
		}
	})
}

// Random callers never get a model that is not loaded, and the loaded models never exceed the memory.
func TestRandomUsers(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, Options{Memory: 100, Models: 3, KeepAlive: 2 * time.Second}, func(t *testing.T, p *Pool, w *world) {
				r := rand.New(rand.NewPCG(seed, 9))
				var wg sync.WaitGroup
				for range 200 {
					name, key := string(rune('a'+r.IntN(6))), fmt.Sprint(r.IntN(2))
					if r.IntN(10) == 0 {
						key = "broken"
					}
					size := int64(10 + 15*(name[0]-'a'))
					timeout, use, die := time.Duration(r.IntN(20_000))*time.Millisecond, time.Duration(r.IntN(500))*time.Millisecond,
						r.IntN(12) == 0
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						l, err := p.Acquire(ctx, w.source(name, key, size), nil)
						if err != nil {
							if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errBroken) && !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							return
						}
						time.Sleep(use)
						if die {
							l.Model.(*model).die()
						}
						l.Release(nil)
					})
				}
				wg.Wait()
				time.Sleep(time.Minute)
				if got := names(p); got != nil || w.most > 100 {
					t.Errorf("%v is left, at most %d bytes were loaded", got, w.most)
				}
			})
		})
	}
}
