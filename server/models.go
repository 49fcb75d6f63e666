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
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server/talk"
	"github.com/opencontainers/go-digest"
)

// model is a model of the store, as its name means it now, and what requests are made with.
type model struct {
	entry *manifest.Entry
	*runtime.Processor
	style    *talk.Style
	template error // why its chat template cannot be used
}

// name is what answers call the model.
func (m *model) name() string { return m.entry.Name.String() }

// talks gives how the model is talked to.
func (m *model) talks() (*talk.Style, error) {
	return m.style, m.template
}

// known keeps what was read of models, which takes a while for large vocabularies.
type known struct {
	mu   sync.Mutex
	list []*model // the latest used last
}

// maxKnown bounds it: a tokenizer may take a hundred megabytes.
const maxKnown = 8

// find looks a model up in the store and reads what requests need of it.
func (s *Server) find(ctx context.Context, name string) (*model, error) {
	if name == "" {
		return nil, badRequest("the request names no model")
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
	if m := s.known.get(entry); m != nil {
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
		return nil, err // says nothing of the template, and the model is kept for others
	}
	if m.template != nil {
		m.template = badRequest("%v; raw gives the model the prompt as it is", m.template)
	}
	if m.Processor, err = runtime.OpenProcessor(s.opts.Store, entry); err != nil {
		return nil, err
	}
	s.known.put(m)
	return m, nil
}

// get gives the model of an entry if it is known.
func (k *known) get(e *manifest.Entry) *model {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, func(m *model) bool { return m.entry.Digest == e.Digest && m.entry.Name == e.Name })
	if i < 0 {
		return nil
	}
	m := k.list[i]
	k.list = append(slices.Delete(k.list, i, i+1), m)
	return m
}

func (k *known) put(m *model) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(slices.DeleteFunc(k.list, func(o *model) bool { return o.entry.Name == m.entry.Name }), m)
	if len(k.list) > maxKnown {
		k.list = slices.Delete(k.list, 0, 1)
	}
}

// digestOf finds what a pool's key was made from.
func digestOf(key string) digest.Digest { return digest.Digest(key[:min(len(key), digestLen)]) }

const digestLen = len("sha256:") + 64

// source tells the pool how the model is loaded. A name that has come to mean something else, or is loaded otherwise, has another key.
func (s *Server) source(m *model) pool.Source {
	room := s.room(m)
	child := Child{Name: childName(m.entry), PrefixCache: room.cache, Memory: room.state}
	return pool.Source{
		Name: m.name(), Key: m.entry.Digest.String() + " " + s.opts.Variant, Size: room.total(),
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

// childName means the manifest that was looked up, whatever the name comes to mean.
func childName(e *manifest.Entry) string {
	n := e.Name
	n.Digest = e.Digest
	return n.String()
}

// lend has a model loaded and gives it, with the time that it took to get it.
func (s *Server) lend(ctx context.Context, m *model) (*pool.Lease, time.Duration, error) {
	begun := time.Now()
	lease, err := s.pool.Acquire(ctx, s.source(m), nil)
	if errors.Is(err, pool.ErrClosed) {
		err = errStopping
	}
	return lease, time.Since(begun), err
}

// begin makes a prompt of a conversation.
func (s *Server) begin(ctx context.Context, m *model, style *talk.Style, c talk.Conversation) (*talk.Prompt, error) {
	if err := m.able(style, &c); err != nil {
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

// unload lets a model go as soon as nobody uses it, and gives its name. A model that is not loaded has to be in the store.
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
