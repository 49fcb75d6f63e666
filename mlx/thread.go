package mlx

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Thread is the engine: one OS thread that makes and evaluates all arrays, because the engine's streams belong to the
// thread that made them.
type Thread struct {
	info   Info
	work   chan *task
	closed chan struct{} // closed by Close; work is never closed, so Do cannot panic
	done   chan struct{} // closed when the goroutine ends
	once   sync.Once

	waiting atomic.Int32 // calls of Do, including the one that runs

	// Owned by the engine's goroutine.
	frame  *frame
	scope  *scope
	stream Stream
}

type task struct {
	ctx   context.Context
	fn    func() error
	err   error
	panic any
	stack []byte
	done  chan struct{}
}

// start starts the engine's goroutine, which first runs setup.
func start(setup func(t *Thread) error) (*Thread, error) {
	t := &Thread{work: make(chan *task), closed: make(chan struct{}), done: make(chan struct{})}
	ready := make(chan error, 1)
	go func() {
		// It stays locked: the engine's state is bound to this OS thread, so no other goroutine may run on it.
		runtime.LockOSThread()
		defer close(t.done)
		err := setup(t)
		ready <- err
		if err == nil {
			t.loop()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Thread) loop() {
	for {
		select {
		case k := <-t.work:
			k.run(t)
		case <-t.closed:
			return
		}
	}
}

// Do runs fn on the engine's thread, in a new scope. It returns fn's error, or the *Error that an operation in fn
// panicked with. Any other panic is raised again in the caller, with the stack of the engine's thread. Cancelling ctx
// ends the wait for the thread; once fn runs, fn must watch ctx itself.
//
// Do must not be called from inside Do: see Within.
func (t *Thread) Do(ctx context.Context, fn func() error) error {
	k := &task{ctx: ctx, fn: fn, done: make(chan struct{})}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case t.work <- k:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return ErrClosed
	}
	<-k.done
	if k.panic != nil {
		panic(fmt.Sprintf("%v\n\nengine thread:\n%s", k.panic, k.stack))
	}
	return k.err
}

func (k *task) run(t *Thread) {
	defer close(k.done)
	if k.err = k.ctx.Err(); k.err != nil {
		return
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			k.err = p
		default:
			k.panic, k.stack = p, debug.Stack()
		}
	}()
	t.Scope(func() { k.err = k.fn() })
}

// Within is Do for use inside Do: fn runs in a new scope, and the failure of an operation ends only fn.
func (t *Thread) Within(fn func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			err = p
		default:
			panic(p)
		}
	}()
	t.Scope(func() { err = fn() })
	return err
}

// Awaited reports, inside Do, whether another Do or Close is waiting for this one to end.
func (t *Thread) Awaited() bool {
	select {
	case <-t.closed:
		return true
	default:
		return t.waiting.Load() > 1
	}
}

// Close waits for running work and ends the thread. Kept arrays stay allocated. The library stays loaded, because the
// engine cannot be unloaded, so it cannot be opened again in this process.
func (t *Thread) Close() {
	t.once.Do(func() { close(t.closed) })
	<-t.done
}
