package ollama

import (
	"net/http"

	"github.com/ingotml/ingot/server/wire"
)

// layersJSON is the response of /api/layers.
type layersJSON struct {
	Model  string      `json:"model"`
	Digest string      `json:"digest"` // of the manifest
	Layers []layerJSON `json:"layers"`
}

// layerJSON is a layer, with the field names of `ingot show --layers --json`.
type layerJSON struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Kind      string `json:"kind"` // tensor, file, license...
	Name      string `json:"name"` // the tensor's name or the file's path
}

// layers is GET /api/layers?model=NAME, an extension: it lists the layers of a model's image.
func (s *api) layers(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("model")
	if name == "" {
		return wire.BadRequest("the model parameter is missing: /api/layers?model=NAME")
	}
	n, err := s.core.Name(name)
	if err != nil {
		return err
	}
	entry, err := s.core.Resolve(r.Context(), n)
	if err != nil {
		return missing(err, notFound, name)
	}
	out := layersJSON{Model: entry.Name.String(), Digest: entry.Digest.String(), Layers: []layerJSON{}}
	for _, l := range entry.Image.Layers {
		out.Layers = append(out.Layers, layerJSON{l.Digest.String(), l.Size, l.MediaType, string(l.Kind), l.Name})
	}
	return wire.WriteJSON(w, out)
}
