package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// Model is a model of the store under its current name, with what requests need to build prompts.
type Model struct {
	Entry *store.Entry
	*processor.Processor
	Style     *prompt.Style
	weights   int64  // bytes that this machine loads
	requested string // the name in the request
}

// Name returns the model's full name, for errors, logs and metrics.
func (m *Model) Name() string { return m.Entry.Name.String() }

// RequestedName returns the name that the request used. Responses repeat it, as the original APIs do.
func (m *Model) RequestedName() string { return m.requested }

// as returns a copy of a cached model for a request that uses a name.
func (m *Model) as(name string) *Model {
	c := *m
	c.requested = name
	return &c
}

// modelCache caches models, since reading a large vocabulary takes a while.
type modelCache struct {
	mu   sync.Mutex
	list []*Model // least recently used first
}

// maxCachedModels limits the cache: a tokenizer can take a hundred megabytes.
const maxCachedModels = 8

// Name parses a model's name in a request. In the original APIs names have no case: if the store does not have the name
// as it is, the name takes the case of an entry that differs in case only.
func (s *Server) Name(text string) (manifest.Name, error) {
	n, err := manifest.ParseName(text)
	if err != nil {
		return n, err
	}
	return s.opts.Store.Existing(n)
}

// Find resolves a name in the store and returns its model, from the cache if possible.
func (s *Server) Find(ctx context.Context, name string) (*Model, error) {
	if name == "" {
		return nil, wire.BadRequest("the model is missing")
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		return nil, err
	}
	found, d, err := s.holds.Resolve(ctx, n)
	if errors.Is(err, manifest.ErrNotFound) {
		if n, err = s.opts.Store.Existing(n); err == nil {
			found, d, err = s.holds.Resolve(ctx, n)
		}
	}
	if err != nil {
		return nil, err
	}
	m, err := s.open(found, d)
	if err != nil {
		return nil, err
	}
	return m.as(name), nil
}

// Running returns the model that a process in the pool runs, which its name may no longer stand for.
func (s *Server) Running(i pool.Info) (*Model, error) {
	n, err := manifest.ParseName(i.Name)
	if err != nil {
		return nil, err
	}
	return s.open(n, DigestOf(i.Key))
}

// open returns the model of an image, from the cache if possible.
func (s *Server) open(n manifest.Name, d digest.Digest) (*Model, error) {
	if m := s.cache.get(n, d); m != nil { // a manifest of many layers takes milliseconds to decode
		return m, nil
	}
	entry, err := s.opts.Store.ReadEntry(n, d)
	if errors.Is(err, manifest.ErrUnknownManifest) {
		return nil, wire.BadRequest("%s: %v", n, err)
	}
	if err != nil {
		return nil, err
	}
	if err := s.opts.Store.CheckPresent(entry, false); err != nil {
		return nil, err
	}
	m := &Model{Entry: entry}
	if m.Style, err = prompt.Open(s.opts.Store, entry); err != nil {
		return nil, err
	}
	if err := m.Style.Texts.CheckRequires(m.Name(), s.opts.Version); err != nil {
		return nil, wire.BadRequest("%v", err)
	}
	if m.Processor, err = processor.Open(s.opts.Store, entry); err != nil {
		return nil, err
	}
	m.weights = s.ownWeights(m)
	s.cache.put(m)
	return m, nil
}

// get returns the cached model of a name and a manifest, or nil.
func (k *modelCache) get(n manifest.Name, d digest.Digest) *Model {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, func(m *Model) bool {
		return m.Entry.Digest == d && m.Entry.Name == n
	})
	if i < 0 {
		return nil
	}
	m := k.list[i]
	k.list = append(slices.Delete(k.list, i, i+1), m)
	return m
}

func (k *modelCache) put(m *Model) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(slices.DeleteFunc(k.list, func(o *Model) bool { return o.Entry.Name == m.Entry.Name }), m)
	if len(k.list) > maxCachedModels {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// DigestOf returns the manifest digest in a pool key.
func DigestOf(key string) digest.Digest { return digest.Digest(key[:min(len(key), digestLen)]) }

const digestLen = len("sha256:") + 64

// source tells the pool how to load a model. If the name now refers to another model, or the variant changes, the key
// changes and the pool reloads it.
func (s *Server) source(m *Model) pool.Source {
	budget := s.memoryBudget(m)
	child := Child{Name: childName(m.Entry), PrefixCache: budget.cache, Memory: budget.state,
		Ranks: s.ranks(m.Entry)}
	return pool.Source{
		Stays: child.Ranks > 1 && !s.opts.Regroups,
		Name:  m.Name(), Key: m.Entry.Digest.String() + " " + s.opts.Variant, Size: budget.total(),
		Load: func(ctx context.Context, loaded func(float64)) (pool.Model, error) {
			begun := time.Now()
			model, err := s.opts.Load(ctx, child, loaded)
			if err == nil {
				s.metrics.Loaded(m.Name(), time.Since(begun))
			}
			return model, err
		},
	}
}

// childName returns the name with the manifest's digest, so that the process loads this model even if the name changes.
func childName(e *store.Entry) string {
	n := e.Name
	n.Digest = e.Digest
	return n.String()
}

// acquire loads a model if needed and leases it. It also returns how long that took.
func (s *Server) acquire(ctx context.Context, m *Model) (*pool.Lease, time.Duration, error) {
	begun := time.Now()
	lease, err := s.pool.Acquire(ctx, s.source(m), nil)
	if errors.Is(err, pool.ErrClosed) {
		err = wire.ErrStopping
	}
	return lease, time.Since(begun), err
}

// Load loads a model if needed. keep is how long it then stays loaded; nil: the server's default.
func (s *Server) Load(ctx context.Context, m *Model, keep *time.Duration) error {
	_, err := s.withProcess(ctx, m, keep, func(*pool.Lease) (said bool, err error) { return false, nil })
	return err
}

// MakePrompt builds the prompt of a conversation.
func (s *Server) MakePrompt(ctx context.Context, m *Model, style *prompt.Style, c prompt.Conversation) (*prompt.Prompt,
	error) {
	if err := style.Ready(ctx, c.Request); err != nil && ctx.Err() == nil {
		return nil, wire.BadRequest("%v; raw sends the prompt without a template", err)
	}
	if err := m.checkCapabilities(style, &c); err != nil {
		return nil, err
	}
	c.AddGenerationPrompt = true
	c.Options, c.Budget = s.renderOptions(), s.prompts
	return style.Begin(ctx, m.Processor, c)
}

func (s *Server) renderOptions() jinja.Options { return jinja.Options{Now: s.opts.Clock} }

// Beginning returns how many of a prompt's tokens it shares with every prompt of a conversation that continues c.
func (s *Server) Beginning(ctx context.Context, m *Model, style *prompt.Style, c prompt.Conversation,
	p *prompt.Prompt) (int, error) {
	c.Options, c.Budget = s.renderOptions(), s.prompts
	ids, err := style.Beginning(ctx, m.Processor, c)
	if err != nil {
		return 0, err
	}
	n := 0
	for n < min(len(ids), len(p.IDs)) && ids[n] == p.IDs[n] {
		n++
	}
	return n, nil
}

// Unload unloads a model as soon as it is idle. A model that is not loaded must be in the store.
func (s *Server) Unload(ctx context.Context, name string) error {
	n, err := s.Name(name)
	if err != nil || s.pool.Stop(n.String()) {
		return err
	}
	_, err = s.opts.Store.ResolveRaw(ctx, n)
	return err
}

// Resolve finds an image by name and keeps it from collections until the request of ctx ends.
func (s *Server) Resolve(ctx context.Context, n manifest.Name) (*store.Entry, error) {
	found, d, err := s.holds.Resolve(ctx, n)
	if err != nil {
		return nil, err
	}
	return s.opts.Store.ReadEntry(found, d)
}

// Hold keeps the image of a model from collections until ctx ends, for work that outlives its request.
func (s *Server) Hold(ctx context.Context, m *Model) {
	if release, err := s.holds.Use(ctx, m.Entry.Digest); err == nil {
		context.AfterFunc(ctx, release)
	}
}

// withProcess runs a request on a model's process, and loads the model if needed. said is whether the client may know
// something of the response. If the process dies before that, perhaps just before the request has come, the request
// goes on with a new one; once, because the request itself may be what kills the process. load is how long loading
// took.
func (s *Server) withProcess(
	ctx context.Context, m *Model, keep *time.Duration, run func(*pool.Lease) (said bool, err error),
) (load time.Duration, err error) {
	for again := s.restarts(m); ; again = false {
		took, said, err := s.onProcess(ctx, m, keep, run)
		load += took
		if !again || said || ctx.Err() != nil || !errors.Is(err, runner.ErrDied) {
			return load, err
		}
		s.opts.Log("%s: %v; it is started again", m.Name(), err)
	}
}

func (s *Server) onProcess(
	ctx context.Context, m *Model, keep *time.Duration, run func(*pool.Lease) (said bool, err error),
) (load time.Duration, said bool, err error) {
	lease, load, err := s.acquire(ctx, m)
	if err != nil {
		return load, false, err
	}
	defer lease.Release(keep)
	said, err = run(lease)
	return load, said, err
}

// restarts reports whether a model whose process has died can be loaded again: not if a launcher starts its ranks.
func (s *Server) restarts(m *Model) bool { return !s.source(m).Stays }
