package ollama

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// PsJSON is the response of /api/ps.
type PsJSON struct {
	Models []PsModel `json:"models"`
	// memory limit of all models in bytes; an extension, only with ?verbose=true
	Memory int64 `json:"memory,omitempty"`
}

// PsModel is a model that is loaded or being loaded.
type PsModel struct {
	Name      string      `json:"name"`
	Model     string      `json:"model"`
	Size      int64       `json:"size"` // bytes of memory reserved for it
	Digest    string      `json:"digest"`
	Details   detailsJSON `json:"details"`
	ExpiresAt time.Time   `json:"expires_at"`     // far in the future if it does not expire
	SizeVRAM  int64       `json:"size_vram"`      // Size on a GPU; 0 on a CPU, and until the model is loaded
	Context   int64       `json:"context_length"` // of a prompt and its response; at most the model's

	// Extensions.
	Loaded   float64        `json:"loaded"`   // fraction that is loaded; 1: ready
	Requests int            `json:"requests"` // that use it or wait for it to load
	PID      int            `json:"pid,omitempty"`
	Stays    bool           `json:"stays,omitempty"` // it is divided over ranks, and not unloaded to make room
	Usage    *runtime.Usage `json:"usage,omitempty"` // only with ?verbose=true
}

// usageTimeout limits the wait for a model's usage report, which comes at the end of a step.
const usageTimeout = 5 * time.Second

// never is the time until expiry that is reported for a model that does not expire. Ollama's clients show it as
// forever.
const never = 100 * 365 * 24 * time.Hour

// ps is GET /api/ps: it lists the loaded models.
func (s *api) ps(w http.ResponseWriter, r *http.Request) error {
	out := PsJSON{Models: []PsModel{}}
	list := s.core.Loaded()
	for _, i := range list {
		m := PsModel{Name: i.Name, Model: i.Name, Size: i.Size,
			Loaded: i.Loaded, Requests: i.Leases, ExpiresAt: i.Expires, Stays: i.Stays}
		d := server.DigestOf(i.Key)
		m.Digest = d.Encoded()
		if m.ExpiresAt.IsZero() {
			m.ExpiresAt = now().Add(never)
		}
		// An error means that its image has been removed.
		if of, err := s.core.Running(i); err == nil {
			m.Details, m.Context = details(of.Entry.Image.Config), int64(s.core.Context(of))
		}
		m.PID = pid(i.Model)
		if onGPU(i.Model) {
			m.SizeVRAM = i.Size
		}
		out.Models = append(out.Models, m)
	}
	if verbose := r.URL.Query().Get("verbose"); verbose != "" && verbose != "false" && verbose != "0" &&
		s.core.SeesUsage(r.Context()) {
		out.Memory = s.opts.Memory
		ctx, cancel := context.WithTimeout(r.Context(), usageTimeout)
		defer cancel()
		var wg sync.WaitGroup
		for i := range list {
			wg.Go(func() { out.Models[i].Usage = server.Usage(ctx, list[i].Model) })
		}
		wg.Wait()
	}
	return wire.WriteJSON(w, out)
}

// pid returns the id of a model's process, or 0.
func pid(m pool.Model) int {
	if p, ok := m.(interface{ PID() int }); ok {
		return p.PID()
	}
	return 0
}

// onGPU reports whether a loaded model computes on a GPU.
func onGPU(m pool.Model) bool {
	g, ok := m.(interface{ GPU() bool })
	return ok && g.GPU()
}
