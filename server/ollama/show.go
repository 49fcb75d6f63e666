package ollama

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/convert/settings"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/wire"
)

// showRequest is the body of /api/show. Older clients send name instead of model.
type showRequest struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

// showJSON is the response of /api/show.
type showJSON struct {
	License      string             `json:"license,omitempty"`
	Modelfile    string             `json:"modelfile,omitempty"`
	Parameters   string             `json:"parameters,omitempty"`
	Template     string             `json:"template,omitempty"`
	System       string             `json:"system,omitempty"`
	Renderer     string             `json:"renderer,omitempty"`
	Parser       string             `json:"parser,omitempty"`
	Details      detailsJSON        `json:"details"`
	Messages     []settings.Message `json:"messages,omitempty"`
	ModelInfo    map[string]any     `json:"model_info"`
	Capabilities []string           `json:"capabilities"`
	ModifiedAt   time.Time          `json:"modified_at"`
	Requires     string             `json:"requires,omitempty"`
	Digest       string             `json:"digest"` // an extension
}

// show is POST /api/show: it describes a model.
func (s *api) show(w http.ResponseWriter, r *http.Request) error {
	var q showRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	n, err := s.name(q.Model, q.Name)
	if err != nil {
		return err
	}
	entry, err := s.opts.Store.Resolve(r.Context(), n)
	if err != nil {
		return missing(err, notFound, cmp.Or(q.Model, q.Name))
	}
	texts, err := settings.Read(s.opts.Store, entry)
	if err != nil {
		return err
	}
	file, notes := texts.Modelfile(entry.Name.String())
	lines, err := file.Format()
	if err != nil {
		return err
	}
	for _, n := range notes {
		lines += "# " + n + "\n"
	}
	c := entry.Image.Config
	out := showJSON{
		License: strings.Join(texts.Licenses, "\n"), Modelfile: lines, Parameters: settings.ParameterText(texts.Parameters),
		Template: texts.Template, System: texts.System, Renderer: texts.Renderer, Parser: texts.Parser, Details: details(c),
		Messages: texts.Messages, ModelInfo: modelInfo(c), Capabilities: append([]string{}, c.Capabilities...),
		Requires: texts.Requires, Digest: entry.Digest.String(),
	}
	if list, err := s.opts.Store.List(r.Context()); err == nil {
		for _, m := range list {
			if m.Name == entry.Name {
				out.ModifiedAt = m.Modified
			}
		}
	}
	return wire.WriteJSON(w, out)
}

// modelInfo returns the GGUF metadata keys that clients use.
func modelInfo(c manifest.Config) map[string]any {
	info := map[string]any{}
	put := func(key string, v any, known bool) {
		if known {
			info[key] = v
		}
	}
	put("general.architecture", c.ModelType, c.ModelType != "")
	put("general.basename", c.Name, c.Name != "")
	put("general.parameter_count", c.Params, c.Params > 0)
	put(c.ModelType+".context_length", c.ContextLength, c.ContextLength > 0)
	put(c.ModelType+".embedding_length", c.EmbeddingLength, c.EmbeddingLength > 0)
	return info
}
