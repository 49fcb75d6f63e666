package server

import (
	"net/http"

	"github.com/ingotml/ingot/manifest"
)

// layersJSON is the answer of /api/layers.
type layersJSON struct {
	Model  string      `json:"model"`
	Digest string      `json:"digest"` // of the manifest
	Layers []layerJSON `json:"layers"`
}

// layerJSON is a layer, with the names that `ingot show --layers --json` has.
type layerJSON struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Kind      string `json:"kind"` // tensor, file, license...
	Name      string `json:"name"` // of the tensor, or the path of the file
}

// layers is GET /api/layers?model=NAME, which is ours: what a model's image is made of.
func (s *Server) layers(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("model")
	if name == "" {
		return badRequest("the request names no model: /api/layers?model=NAME")
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		return err
	}
	entry, err := s.opts.Store.Resolve(r.Context(), n)
	if err != nil {
		return err
	}
	out := layersJSON{Model: entry.Name.String(), Digest: entry.Digest.String(), Layers: []layerJSON{}}
	for _, l := range entry.Image.Layers {
		out.Layers = append(out.Layers, layerJSON{l.Digest.String(), l.Size, l.MediaType, string(l.Kind), l.Name})
	}
	return writeJSON(w, out)
}
