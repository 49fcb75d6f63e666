package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/server/talk"
	"github.com/opencontainers/go-digest"
)

// model is a model of the store under its current name, with what requests need to build prompts.
type model struct {
	entry *manifest.Entry
	*processor.Processor
	style    *talk.Style
	template error // why the chat template is unusable
}

// name returns the model's name in responses.
func (m *model) name() string { return m.entry.Name.String() }

// chatStyle returns the chat template and its settings.
func (m *model) chatStyle() (*talk.Style, error) {
	return m.style, m.template
}

// modelCache caches models, since reading a large vocabulary takes a while.
type modelCache struct {
	mu   sync.Mutex
	list []*model // least recently used first
}

// maxCachedModels limits the cache: a tokenizer can take a hundred megabytes.
const maxCachedModels = 8

// find resolves a name in the store and returns its model, from the cache if possible.
func (s *Server) find(ctx context.Context, name string) (*model, error) {
	if name == "" {
		return nil, badRequest("the model is missing")
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		return nil, err
	}
	entry, err := s.opts.Store.Resolve(ctx, n)
	if errors.Is(err, manifest.ErrUnknownManifest) {
		return nil, badRequest("%s: %v", n, err)
	}
	if err != nil {
		return nil, err
	}
	if m := s.cache.get(entry); m != nil {
		return m, nil
	}
	if err := s.opts.Store.CheckPresent(entry, false); err != nil {
		return nil, err
	}
	m := &model{entry: entry}
	if m.style, err = talk.Open(s.opts.Store, entry); err != nil {
		return nil, err
	}
	if err := m.style.Texts.CheckRequires(m.name(), s.opts.Version); err != nil {
		return nil, badRequest("%v", err)
	}
	m.template = m.style.ReadTemplate(ctx, s.opts.Store, entry)
	if err := ctx.Err(); err != nil {
		return nil, err // m.template may be an error of this request, which must not be cached
	}
	if m.template != nil {
		m.template = badRequest("%v; raw sends the prompt without a template", m.template)
	}
	if m.Processor, err = processor.Open(s.opts.Store, entry); err != nil {
		return nil, err
	}
	s.cache.put(m)
	return m, nil
}

// get returns the cached model of an entry, or nil.
func (k *modelCache) get(e *manifest.Entry) *model {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, func(m *model) bool {
		return m.entry.Digest == e.Digest && m.entry.Name == e.Name
	})
	if i < 0 {
		return nil
	}
	m := k.list[i]
	k.list = append(slices.Delete(k.list, i, i+1), m)
	return m
}

func (k *modelCache) put(m *model) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(slices.DeleteFunc(k.list, func(o *model) bool { return o.entry.Name == m.entry.Name }), m)
	if len(k.list) > maxCachedModels {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// digestOf returns the manifest digest in a pool key.
func digestOf(key string) digest.Digest { return digest.Digest(key[:min(len(key), digestLen)]) }

const digestLen = len("sha256:") + 64

// source tells the pool how to load a model. If the name now refers to another model, or the variant changes, the key
// changes and the pool reloads it.
func (s *Server) source(m *model) pool.Source {
	budget := s.memoryBudget(m)
	child := Child{Name: childName(m.entry), PrefixCache: budget.cache, Memory: budget.state}
	return pool.Source{
		Name: m.name(), Key: m.entry.Digest.String() + " " + s.opts.Variant, Size: budget.total(),
		Load: func(ctx context.Context, loaded func(float64)) (pool.Model, error) {
			begun := time.Now()
			model, err := s.opts.Load(ctx, child, loaded)
			if err == nil {
				s.metrics.model(m.name()).load.observe(time.Since(begun))
			}
			return model, err
		},
	}
}

// childName returns the name with the manifest's digest, so that the process loads this model even if the name changes.
func childName(e *manifest.Entry) string {
	n := e.Name
	n.Digest = e.Digest
	return n.String()
}

// acquire loads a model if needed and leases it. It also returns how long that took.
func (s *Server) acquire(ctx context.Context, m *model) (*pool.Lease, time.Duration, error) {
	begun := time.Now()
	lease, err := s.pool.Acquire(ctx, s.source(m), nil)
	if errors.Is(err, pool.ErrClosed) {
		err = errStopping
	}
	return lease, time.Since(begun), err
}

// makePrompt builds the prompt of a conversation.
func (s *Server) makePrompt(ctx context.Context, m *model, style *talk.Style, c talk.Conversation) (*talk.Prompt,
	error) {
	if err := m.checkCapabilities(style, &c); err != nil {
		return nil, err
	}
	c.AddGenerationPrompt = true
	c.Options, c.Budget = jinja.Options{Now: s.opts.Clock}, s.prompts
	p, err := style.Begin(ctx, m.Processor, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name(), err)
	}
	return p, nil
}

// unload unloads a model as soon as it is idle, and returns its full name. A model that is not loaded must be in the
// store.
func (s *Server) unload(ctx context.Context, name string) (string, error) {
	n, err := manifest.ParseName(name)
	if err != nil {
		return "", err
	}
	if s.pool.Stop(n.String()) {
		return n.String(), nil
	}
	_, err = s.opts.Store.ResolveRaw(ctx, n)
	return n.String(), err
}
