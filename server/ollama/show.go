package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/server/wire"
)

// showRequest is the body of /api/show. Older clients send name instead of model.
type showRequest struct {
	Model   string                     `json:"model"`
	Name    string                     `json:"name"`
	Verbose bool                       `json:"verbose"` // with tensors, and all of the vocabulary
	System  string                     `json:"system"`  // shown instead of the model's
	Options map[string]json.RawMessage `json:"options"` // shown in the Modelfile over the model's
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
	Tensors      []tensorJSON       `json:"tensors,omitempty"`
	Capabilities []string           `json:"capabilities"`
	ModifiedAt   time.Time          `json:"modified_at"`
	Requires     string             `json:"requires,omitempty"`
	Digest       string             `json:"digest"` // an extension
}

// tensorJSON is a tensor of the model's image.
type tensorJSON struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
}

// copilotAgent begins the user agent of GitHub Copilot Chat, which shows general.basename as the model's name.
const copilotAgent = "GitHubCopilotChat/"

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
	entry, err := s.core.Resolve(r.Context(), n)
	if err != nil {
		return missing(err, notFound, cmp.Or(q.Model, q.Name))
	}
	out, err := s.describeModel(r.Context(), entry, q)
	if err != nil {
		return err
	}
	if strings.HasPrefix(r.UserAgent(), copilotAgent) {
		out.ModelInfo = maps.Clone(out.ModelInfo)
		out.ModelInfo["general.basename"] = cmp.Or(q.Model, q.Name)
	}
	return wire.WriteJSON(w, out)
}

func (s *api) describeModel(ctx context.Context, entry *store.Entry, q showRequest) (out showJSON, err error) {
	if err := wire.Take(ctx, textBytes(entry)); err != nil {
		return out, err
	}
	texts, err := settings.Read(s.opts.Store, entry)
	if err != nil {
		return out, err
	}
	parameters := settings.ParameterText(texts.Parameters)
	texts.System = cmp.Or(q.System, texts.System)
	for name, value := range q.Options {
		values, err := parameterTexts(value)
		if err != nil {
			return out, wire.BadRequest("options.%s: %v", wire.Clip(name), err)
		}
		if texts.Parameters == nil {
			texts.Parameters = map[string]any{}
		}
		texts.Parameters[name] = toAny(values)
	}
	file, notes := texts.Modelfile(entry.Name.String())
	lines, err := file.Format()
	if err != nil {
		return out, err
	}
	if len(notes) > 0 {
		lines += "# " + strings.Join(notes, "\n# ") + "\n"
	}
	list, err := s.opts.Store.Listing(ctx)
	if err != nil {
		return out, err
	}
	f, err := s.facts.get(ctx, list, entry, true)
	if err != nil {
		return out, err
	}
	c := entry.Image.Config
	out = showJSON{
		License: strings.Join(texts.Licenses, "\n"), Modelfile: lines, Parameters: parameters,
		Template: texts.Template, System: texts.System, Renderer: texts.Renderer, Parser: texts.Parser, Details: details(c),
		Messages: texts.Messages, ModelInfo: f.info, Capabilities: f.capabilities,
		Requires: texts.Requires, Digest: entry.Digest.String(),
	}
	out.Details.ParentModel = names(list.Models)[f.parent]
	for _, m := range list.Models {
		if m.Name == entry.Name {
			out.ModifiedAt = m.Modified
		}
	}
	if q.Verbose {
		if out.ModelInfo, err = s.facts.verboseInfo(ctx, s.opts.Store, entry); err != nil {
			return out, err
		}
		out.Tensors, err = s.tensors(ctx, entry)
	}
	return out, err
}

// textBytes estimates the memory for reading the texts of a model, and for the Modelfile that has them again.
func textBytes(entry *store.Entry) (n int64) {
	const copies = 4
	for _, l := range entry.Image.Layers {
		switch l.Kind {
		case manifest.KindTemplate, manifest.KindSystem, manifest.KindLicense, manifest.KindParams, manifest.KindMessages:
			n += copies * l.Size
		}
	}
	return n
}

// tensors lists the tensors of a model. It reads only their headers.
func (s *api) tensors(ctx context.Context, entry *store.Entry) ([]tensorJSON, error) {
	list, err := source.ReadTensors(ctx, s.opts.Store, entry)
	if err != nil {
		return nil, err
	}
	out := make([]tensorJSON, len(list))
	for i, t := range list {
		out[i] = tensorJSON{t.Name, string(t.DType), append([]int64{}, t.Shape...)}
		if t.Type != 0 {
			out[i].Type = t.Type.String()
		}
	}
	return out, nil
}

// toAny returns values as decoded JSON has them.
func toAny(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
