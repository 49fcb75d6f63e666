package ollama

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// apiVersion is the version of Ollama whose API this package has. Clients compare it: VS Code's Copilot requires 0.6.4.
const apiVersion = "0.33.0"

// VersionJSON is the response of /api/version. The fields beyond Ollama's identify ingot servers.
type VersionJSON struct {
	Version string `json:"version"` // of Ollama's API
	Ingot   string `json:"ingot"`   // of the program
	Store   string `json:"store"`   // identity.StoreID of the store; not a proof of who serves it
}

// version is GET /api/version.
func (s *api) version(w http.ResponseWriter, _ *http.Request) error {
	return wire.WriteJSON(w, VersionJSON{apiVersion, s.opts.Version, identity.StoreID(s.opts.Store)})
}

// statusJSON is the response of /api/status.
type statusJSON struct {
	Cloud cloudJSON `json:"cloud"`
}

type cloudJSON struct {
	Disabled bool   `json:"disabled"`
	Source   string `json:"source"`
}

// status is GET /api/status, with which Ollama's clients ask whether models of its cloud can be used.
func (s *api) status(w http.ResponseWriter, _ *http.Request) error {
	return wire.WriteJSON(w, statusJSON{cloudJSON{Disabled: true, Source: "config"}})
}

// tagsJSON is the response of /api/tags.
type tagsJSON struct {
	Models []tagJSON `json:"models"`
}

type tagJSON struct {
	Name         string      `json:"name"`
	Model        string      `json:"model"`
	ModifiedAt   time.Time   `json:"modified_at"`
	Size         int64       `json:"size"`
	Digest       string      `json:"digest"`
	Details      detailsJSON `json:"details"`
	Capabilities []string    `json:"capabilities,omitempty"`
}

type detailsJSON struct {
	ParentModel   string   `json:"parent_model"`
	Format        string   `json:"format"`
	Family        string   `json:"family"`
	Families      []string `json:"families"`
	ParameterSize string   `json:"parameter_size"`
	Quantization  string   `json:"quantization_level"`
	Context       int64    `json:"context_length,omitempty"`
	Embedding     int64    `json:"embedding_length,omitempty"`
}

// details returns the details that an image's configuration has.
func details(c manifest.Config) detailsJSON {
	d := detailsJSON{Format: c.Format, Family: c.ModelType, Families: []string{}, Quantization: c.Quantization,
		Context: c.ContextLength, Embedding: c.EmbeddingLength}
	if d.Family != "" {
		d.Families = append(d.Families, d.Family)
	}
	if d.Quantization == "" {
		d.Quantization = c.DType
	}
	if c.Params > 0 {
		d.ParameterSize = formatCount(c.Params)
	}
	return d
}

// formatCount formats a number of parameters: 7.62B.
func formatCount(n int64) string {
	for _, u := range []struct {
		unit string
		of   float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if float64(n) >= u.of {
			return fmt.Sprintf("%.3g%s", float64(n)/u.of, u.unit)
		}
	}
	return fmt.Sprint(n)
}

// names returns a name of each stored image that has one.
func names(list []store.Summary) map[digest.Digest]string {
	of := make(map[digest.Digest]string, len(list))
	for _, m := range list {
		if of[m.Digest] == "" {
			of[m.Digest] = m.Name.String()
		}
	}
	return of
}

// newestFirst sorts models like Ollama, whose first one is the default of some clients. Others stay in their order.
func newestFirst(list []tagJSON) {
	slices.SortStableFunc(list, func(a, b tagJSON) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
}

// tags is GET /api/tags: it lists the models of the store.
func (s *api) tags(w http.ResponseWriter, r *http.Request) error {
	list, err := s.opts.Store.Listing(r.Context())
	if err != nil {
		return err
	}
	named := names(list.Models)
	described := store.PerImage(func(m store.Summary) tagJSON {
		t := tagJSON{Digest: m.Digest.Encoded()}
		// An error means that the image is not a model or has been removed: it is listed without details.
		if entry, err := list.ReadEntry(m.Name, m.Digest); err == nil {
			t.Details = details(entry.Image.Config)
			if f, err := s.facts.get(r.Context(), list, entry, false); err == nil {
				t.Capabilities, t.Details.ParentModel = f.capabilities, named[f.parent]
			}
		}
		return t
	})
	out := tagsJSON{Models: []tagJSON{}}
	for _, m := range list.Models {
		t := described(m)
		t.Name, t.Model, t.ModifiedAt, t.Size = m.Name.String(), m.Name.String(), m.Modified, m.Size
		out.Models = append(out.Models, t)
	}
	newestFirst(out.Models)
	return wire.WriteJSON(w, out)
}
