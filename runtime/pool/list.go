package pool

import (
	"slices"
	"time"
)

// Info describes a model in the pool.
type Info struct {
	Name    string
	Key     string
	Size    int64
	Loaded  float64   // progress of the load, 1 when it is ready
	Leases  int       // requests that use the model or wait for it
	Expires time.Time // when the idle model will be unloaded; zero while it is in use, or if it stays loaded
	Model   Model     // nil while it loads
	Stays   bool      // see Source
}

// List returns the models that are loaded or loading, in order of loading.
func (p *Pool) List() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Info
	for _, e := range p.models {
		if e.stale {
			continue
		}
		i := Info{
			Name: e.source.Name, Key: e.source.Key, Size: e.source.Size, Loaded: e.loaded, Leases: e.leases, Model: e.model,
			Stays: e.source.Stays,
		}
		if e.leases == 0 && e.keepAlive > 0 {
			i.Expires = e.lastUsed.Add(e.keepAlive)
		}
		list = append(list, i)
	}
	return list
}

// Stop unloads a model as soon as it is not in use, and reports whether there is one with that name.
func (p *Pool) Stop(name string) (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.models {
		if e.source.Name == name && (!e.stale || e.replaced) {
			found = found || !e.stale
			p.retire(e)
			e.replaced = false
		}
	}
	return found
}

// Close unloads all models, including those in use, whose requests end with an error. It waits until they have ended.
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
