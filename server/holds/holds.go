// Package holds keeps the images that a server's requests use from collections, so that a request goes on with the
// image that its name stood for, whatever happens to the name. The processes of models need nothing of the kind once
// they have loaded: they have the files open.
package holds

import (
	"context"
	"slices"
	"sync"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
)

// Holds are the images of a store that requests use. Its methods are safe for concurrent use.
type Holds struct {
	Store *store.Store

	mu sync.Mutex
	of map[digest.Digest]*hold
}

// hold is an image that requests use.
type hold struct {
	users   int
	ready   chan struct{} // closed when release or err is set
	release func()
	err     error
}

// Use keeps an image until release is called. Requests of the same image share a note of the process.
func (h *Holds) Use(ctx context.Context, d digest.Digest) (release func(), err error) {
	h.mu.Lock()
	x := h.of[d]
	first := x == nil
	if first {
		x = &hold{ready: make(chan struct{})}
		if h.of == nil {
			h.of = map[digest.Digest]*hold{}
		}
		h.of[d] = x
	}
	x.users++
	h.mu.Unlock()
	if first {
		x.release, x.err = ingest.Use(context.WithoutCancel(ctx), h.Store, d)
		close(x.ready)
	}
	<-x.ready
	if x.err != nil {
		h.leave(d, x)
		return nil, x.err
	}
	return sync.OnceFunc(func() { h.leave(d, x) }), nil
}

func (h *Holds) leave(d digest.Digest, x *hold) {
	h.mu.Lock()
	x.users--
	last := x.users == 0
	if last {
		delete(h.of, d)
	}
	h.mu.Unlock()
	if last && x.err == nil {
		x.release()
	}
}

// held is what one request holds.
type held struct {
	mu      sync.Mutex
	release []func()
	ended   bool
}

type heldKey struct{}

// With returns a context for a request. end releases what the request holds; it is called when its handler returns,
// and so before the client sees the end of the response.
func With(ctx context.Context) (with context.Context, end func()) {
	h := &held{}
	return context.WithValue(ctx, heldKey{}, h), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = true
		for _, release := range h.release {
			release()
		}
		h.release = nil
	}
}

// until calls release when the request of a context made by With ends, or else when the context does.
func until(ctx context.Context, release func()) {
	h, ok := ctx.Value(heldKey{}).(*held)
	if ok {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	if !ok || h.ended {
		context.AfterFunc(ctx, release)
		return
	}
	h.release = append(slices.Clip(h.release), release)
}

// Resolve finds the image of a name and keeps it until the request of ctx ends.
func (h *Holds) Resolve(ctx context.Context, n manifest.Name) (found manifest.Name, d digest.Digest, err error) {
	found, d, release, err := ingest.Resolve(ctx, h.Store, n, h.Use)
	if err == nil {
		until(ctx, release)
	}
	return found, d, err
}
