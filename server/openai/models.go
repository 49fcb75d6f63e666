package openai

import (
	"net/http"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/wire"
)

// openAIModels is the response of /v1/models.
type openAIModels struct {
	Object string        `json:"object"`
	Data   []openAIModel `json:"data"`
}

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Context int64  `json:"context_length,omitempty"` // an extension
}

// newOpenAIModel describes a model. Its owner is the registry in its name, if any.
func newOpenAIModel(n manifest.Name, c manifest.Config, modified time.Time) openAIModel {
	owner := n.Host
	if owner == "" {
		owner = "library"
	}
	return openAIModel{ID: n.String(), Object: "model", Created: modified.Unix(), OwnedBy: owner, Context: c.ContextLength}
}

// listModels is GET /v1/models.
func (s *api) listModels(w http.ResponseWriter, r *http.Request) error {
	list, err := s.opts.Store.Listing(r.Context())
	if err != nil {
		return err
	}
	config := list.Configs()
	out := openAIModels{Object: "list", Data: []openAIModel{}}
	for _, m := range list.Models {
		out.Data = append(out.Data, newOpenAIModel(m.Name, config(m), m.Modified))
	}
	return wire.WriteJSON(w, out)
}

// getModel is GET /v1/models/{id...}.
func (s *api) getModel(w http.ResponseWriter, r *http.Request) error {
	n, err := s.core.Name(r.PathValue("id"))
	if err != nil {
		return err
	}
	entry, err := s.core.Resolve(r.Context(), n)
	if err != nil {
		return err
	}
	modified := time.Unix(0, 0)
	if list, err := s.opts.Store.List(r.Context()); err == nil {
		for _, m := range list {
			if m.Name == entry.Name {
				modified = m.Modified
			}
		}
	}
	out := newOpenAIModel(entry.Name, entry.Image.Config, modified)
	out.ID = r.PathValue("id") // as the request spells it
	return wire.WriteJSON(w, out)
}
