package server

import (
	"context"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// Loaded lists the models that are loaded or being loaded.
func (s *Server) Loaded() []pool.Info { return s.pool.List() }

// UnloadIdle unloads a model as soon as it is idle. It reports whether the model was loaded.
func (s *Server) UnloadIdle(n manifest.Name) bool { return s.pool.Stop(n.String()) }

// Usage returns a model's usage report, or nil if it does not report in time.
func Usage(ctx context.Context, m pool.Model) *runtime.Usage {
	r, ok := m.(runtime.Reporter)
	if !ok {
		return nil
	}
	u, err := r.Usage(ctx)
	if err != nil {
		return nil
	}
	return &u
}
