package server

import (
	"net/http"
	"time"
)

// embedRequest is the body of /api/embed.
type embedRequest struct {
	Model      string    `json:"model"`
	Input      inputs    `json:"input"`
	Truncate   bool      `json:"truncate"` // cut inputs that are too long; otherwise they are an error
	Dimensions int       `json:"dimensions"`
	KeepAlive  keepAlive `json:"keep_alive"`
	Options    options   `json:"options"`
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
func (s *Server) embed(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q embedRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Input.isEmpty() {
		name, _, err := s.onlyLoad(r, q.Model, q.KeepAlive)
		if err != nil {
			return err
		}
		return writeJSON(w, embedJSON{Model: name, Embeddings: [][]float32{}, Total: int64(time.Since(begun))})
	}
	m, e, load, err := s.vectors(r.Context(), q.Model,
		embedParams{q.Input, q.Truncate, q.Dimensions, q.KeepAlive.Duration, q.Options.NumCtx})
	if err != nil {
		return err
	}
	return writeJSON(w, embedJSON{m.name(), e.Vectors, int64(time.Since(begun)), int64(load), e.Tokens})
}

// embeddingRequest is the body of /api/embeddings, which older clients use.
type embeddingRequest struct {
	Model     string    `json:"model"`
	Prompt    string    `json:"prompt"`
	KeepAlive keepAlive `json:"keep_alive"`
	Options   options   `json:"options"`
}

type embeddingJSON struct {
	Embedding []float32 `json:"embedding"`
}

// embeddings is POST /api/embeddings: it computes the embedding of one text.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var q embeddingRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.Prompt == "" {
		if _, _, err := s.onlyLoad(r, q.Model, q.KeepAlive); err != nil {
			return err
		}
		return writeJSON(w, embeddingJSON{[]float32{}})
	}
	_, e, _, err := s.vectors(r.Context(), q.Model,
		embedParams{input: inputs{texts: []string{q.Prompt}}, keep: q.KeepAlive.Duration, context: q.Options.NumCtx})
	if err != nil {
		return err
	}
	return writeJSON(w, embeddingJSON{e.Vectors[0]})
}
