package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// PsJSON is the answer of /api/ps.
type PsJSON struct {
	Models []PsModel `json:"models"`
	Memory int64     `json:"memory,omitempty"` // bytes that all of them may take, where the request has ?verbose=true; ours
}

// PsModel is a model that is loaded or being loaded.
type PsModel struct {
	Name      string      `json:"name"`
	Model     string      `json:"model"`
	Size      int64       `json:"size"` // bytes of memory that it has room for
	Digest    string      `json:"digest"`
	Details   detailsJSON `json:"details"`
	ExpiresAt time.Time   `json:"expires_at"` // far in the future: not by itself
	SizeVRAM  int64       `json:"size_vram"`
	Context   int64       `json:"context_length"`

	// Ours.
	Loaded   float64        `json:"loaded"`   // 1: it is ready
	Requests int            `json:"requests"` // that use it or wait for it
	PID      int            `json:"pid,omitempty"`
	Usage    *runtime.Usage `json:"usage,omitempty"` // where the request has ?verbose=true
}

// usagePatience is how long a model may take to tell how it does: it ends the step that it is at first.
const usagePatience = 5 * time.Second

// never is when a model goes that stays until it is told to, or until its room is needed; clients of Ollama show it so.
const never = 100 * 365 * 24 * time.Hour

// ps is GET /api/ps: the models that are loaded.
func (s *Server) ps(w http.ResponseWriter, r *http.Request) error {
	out := PsJSON{Models: []PsModel{}}
	list := s.pool.List()
	for _, i := range list {
		m := PsModel{Name: i.Name, Model: i.Name, Size: i.Size, SizeVRAM: i.Size, Loaded: i.Loaded, Requests: i.Leases, ExpiresAt: i.Expires}
		d := digestOf(i.Key)
		m.Digest = d.Encoded()
		if m.ExpiresAt.IsZero() {
			m.ExpiresAt = now().Add(never)
		}
		if n, err := manifest.ParseName(i.Name); err == nil {
			n.Digest = d
			if entry, err := s.opts.Store.Resolve(r.Context(), n); err == nil { // else the name means something else by now
				m.Details, m.Context = details(entry.Image.Config), entry.Image.Config.ContextLength
			}
		}
		m.PID = pid(i.Model)
		out.Models = append(out.Models, m)
	}
	if verbose := r.URL.Query().Get("verbose"); verbose != "" && verbose != "false" && verbose != "0" {
		out.Memory = s.opts.Memory
		ctx, cancel := context.WithTimeout(r.Context(), usagePatience)
		defer cancel()
		var wg sync.WaitGroup
		for i := range list {
			wg.Go(func() { out.Models[i].Usage = usage(ctx, list[i].Model) })
		}
		wg.Wait()
	}
	return writeJSON(w, out)
}

// usage is what a model does, nil where it does not tell.
func usage(ctx context.Context, m pool.Model) *runtime.Usage {
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

// pid is the process of a model, 0 where it has none.
func pid(m pool.Model) int {
	if p, ok := m.(interface{ PID() int }); ok {
		return p.PID()
	}
	return 0
}
