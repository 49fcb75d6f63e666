package ollama

import (
	"context"
	"net/http"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// embedRequest is the body of /api/embed.
type embedRequest struct {
	Model      string           `json:"model"`
	Input      server.Inputs    `json:"input"`
	Truncate   *bool            `json:"truncate"` // cut inputs that are too long, the default; false: they are an error
	Dimensions int              `json:"dimensions"`
	KeepAlive  params.KeepAlive `json:"keep_alive"`
	Options    params.Options   `json:"options"`
}

// embedJSON is the response of /api/embed. Durations are in nanoseconds.
type embedJSON struct {
	Model      string      `json:"model"`
	Embeddings [][]float32 `json:"embeddings"`
	Total      int64       `json:"total_duration,omitempty"`
	Load       int64       `json:"load_duration,omitempty"`
	Tokens     int         `json:"prompt_eval_count,omitempty"`
}

// embed is POST /api/embed: it computes the embedding of each text.
func (s *api) embed(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q embedRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if q.Input.IsEmpty() {
		if _, err := s.onlyLoad(r, q.Model, q.KeepAlive); err != nil {
			return err
		}
		return wire.WriteJSON(w, embedJSON{Model: q.Model, Embeddings: [][]float32{}, Total: int64(time.Since(begun))})
	}
	m, e, load, err := s.embeddingsOf(r.Context(), q)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, embedJSON{m.RequestedName(), e.Vectors, int64(time.Since(begun)), int64(load), e.Tokens})
}

// embeddingsOf computes the embeddings of a request. Dimensions that the model does not have are all of them, as for
// Ollama.
func (s *api) embeddingsOf(ctx context.Context, q embedRequest) (*server.Model, runtime.Embeddings, time.Duration,
	error) {
	m, err := s.find(ctx, q.Model, notFoundToEmbed)
	if err != nil {
		return nil, runtime.Embeddings{}, 0, err
	}
	if size, err := m.EmbeddingSize(); err == nil && (q.Dimensions < 0 || q.Dimensions > size) {
		q.Dimensions = 0
	}
	e, load, err := s.core.Embed(ctx, m, server.EmbedRequest{Input: q.Input, Truncate: q.Truncate == nil || *q.Truncate,
		Dimensions: q.Dimensions, Keep: q.KeepAlive.Duration, Context: q.Options.NumCtx})
	return m, e, load, err
}

// embeddingRequest is the body of /api/embeddings, which older clients use.
type embeddingRequest struct {
	Model     string           `json:"model"`
	Prompt    string           `json:"prompt"`
	Truncate  *bool            `json:"truncate"`
	KeepAlive params.KeepAlive `json:"keep_alive"`
	Options   params.Options   `json:"options"`
}

type embeddingJSON struct {
	Embedding []float32 `json:"embedding"`
}

// embeddings is POST /api/embeddings: it computes the embedding of one text.
func (s *api) embeddings(w http.ResponseWriter, r *http.Request) error {
	var q embeddingRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if q.Prompt == "" {
		if _, err := s.onlyLoad(r, q.Model, q.KeepAlive); err != nil {
			return err
		}
		return wire.WriteJSON(w, embeddingJSON{[]float32{}})
	}
	_, e, _, err := s.embeddingsOf(r.Context(), embedRequest{Model: q.Model,
		Input: server.Inputs{Texts: []string{q.Prompt}}, Truncate: q.Truncate, KeepAlive: q.KeepAlive, Options: q.Options})
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, embeddingJSON{e.Vectors[0]})
}
