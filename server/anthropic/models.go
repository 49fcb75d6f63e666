package anthropic

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/wire"
)

// versionHeader is the header of Anthropic's clients. Without it, the list of models is OpenAI's.
const versionHeader = "Anthropic-Version"

// modelList is a page of the list of models.
type modelList struct {
	Data    []modelInfo `json:"data"`
	HasMore bool        `json:"has_more"`
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
}

// modelInfo describes a model.
type modelInfo struct {
	Type         string        `json:"type"`
	ID           string        `json:"id"`
	DisplayName  string        `json:"display_name"`
	CreatedAt    time.Time     `json:"created_at"`
	Lifecycle    string        `json:"lifecycle"`
	Line         *string       `json:"line"`
	DeprecatedAt *time.Time    `json:"deprecated_at"`
	RetiresAt    *time.Time    `json:"retires_at"`
	MaxInput     *int64        `json:"max_input_tokens"`
	MaxTokens    *int64        `json:"max_tokens"`
	Capabilities *capabilities `json:"capabilities"`
}

// capability says whether a model can do something. A request that asks for more is not refused: see the package.
type capability struct {
	Supported bool `json:"supported"`
}

// capabilities are what a model can do. A PDF is read as text, so that every model takes it.
type capabilities struct {
	Batch         capability `json:"batch"`
	Citations     capability `json:"citations"`
	CodeExecution capability `json:"code_execution"`
	Context       struct {
		Supported bool `json:"supported"`
	} `json:"context_management"`
	Effort struct {
		Supported bool       `json:"supported"`
		Low       capability `json:"low"`
		Medium    capability `json:"medium"`
		High      capability `json:"high"`
		XHigh     capability `json:"xhigh"`
		Max       capability `json:"max"`
	} `json:"effort"`
	ImageInput  capability `json:"image_input"`
	PDFInput    capability `json:"pdf_input"`
	ServerTools struct {
		Supported     bool       `json:"supported"`
		CodeExecution capability `json:"code_execution"`
		WebSearch     capability `json:"web_search"`
	} `json:"server_tools"`
	StructuredOutputs capability `json:"structured_outputs"`
	Thinking          struct {
		Supported bool `json:"supported"`
		Types     struct {
			Adaptive     capability `json:"adaptive"`
			BetweenTools capability `json:"between_tools"`
			Disabled     capability `json:"disabled"`
			Enabled      capability `json:"enabled"`
		} `json:"types"`
	} `json:"thinking"`
}

// newCapabilities converts an image's capabilities. An image without a list has none that need one.
func newCapabilities(list []string) *capabilities {
	c := &capabilities{PDFInput: capability{true}, StructuredOutputs: capability{true}}
	c.ImageInput.Supported = slices.Contains(list, manifest.CapVision)
	thinks := capability{slices.Contains(list, manifest.CapThinking)}
	c.Thinking.Supported, c.Effort.Supported = thinks.Supported, thinks.Supported
	c.Effort.Low, c.Effort.Medium, c.Effort.High, c.Effort.XHigh, c.Effort.Max = thinks, thinks, thinks, thinks, thinks
	types := &c.Thinking.Types
	types.Adaptive, types.Enabled, types.BetweenTools, types.Disabled = thinks, thinks, thinks, capability{true}
	return c
}

// newModelInfo describes a model of the store. ok is false for one that generates no text.
func newModelInfo(n manifest.Name, c manifest.Config, modified time.Time) (m modelInfo, ok bool) {
	m = modelInfo{Type: "model", ID: n.String(), DisplayName: n.String(), CreatedAt: modified.UTC().Truncate(time.Second),
		Lifecycle: "active", Capabilities: newCapabilities(c.Capabilities)}
	if c.ContextLength > 0 {
		m.MaxInput, m.MaxTokens = &c.ContextLength, &c.ContextLength
	}
	embeds := slices.Contains(c.Capabilities, manifest.CapEmbedding)
	return m, !embeds || slices.Contains(c.Capabilities, manifest.CapCompletion)
}

// models returns the models of the store that generate text, the newest first.
func (s *api) models(r *http.Request) ([]modelInfo, error) {
	list, err := s.opts.Store.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	config := list.Configs()
	out := []modelInfo{}
	for _, m := range list.Models {
		if info, ok := newModelInfo(m.Name, config(m), m.Modified); ok {
			out = append(out, info)
		}
	}
	slices.SortStableFunc(out, func(a, b modelInfo) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// Bounds of a page.
const (
	defaultPage = 20
	largestPage = 1000
)

// listModels is GET /v1/models with the header anthropic-version.
func (s *api) listModels(w http.ResponseWriter, r *http.Request) error {
	list, err := s.models(r)
	if err != nil {
		return err
	}
	page, err := pageOf(list, r.URL.Query())
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, page)
}

// pageOf returns a page of a list.
func pageOf(list []modelInfo, q url.Values) (page modelList, err error) {
	limit := defaultPage
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > largestPage {
			return page, wire.BadParam("limit", "must be a number from 1 to %d", largestPage)
		}
	}
	if stages := append(q["lifecycle"], q["lifecycle[]"]...); len(stages) > 0 && !slices.Contains(stages, "active") {
		list = nil
	}
	find := func(name string) (int, error) {
		id := q.Get(name)
		i := slices.IndexFunc(list, func(m modelInfo) bool { return m.ID == id })
		if i < 0 {
			return 0, wire.BadParam(name, "no model is named %q", wire.Clip(id))
		}
		return i, nil
	}
	before := false
	switch {
	case q.Get("after_id") != "" && q.Get("before_id") != "":
		return page, wire.BadParam("before_id", "cannot be combined with after_id")
	case q.Get("after_id") != "":
		i, err := find("after_id")
		if err != nil {
			return page, err
		}
		list = list[i+1:]
	case q.Get("before_id") != "":
		i, err := find("before_id")
		if err != nil {
			return page, err
		}
		list, before = list[:i], true
	}
	if page.HasMore = len(list) > limit; page.HasMore {
		if before {
			list = list[len(list)-limit:]
		} else {
			list = list[:limit]
		}
	}
	if page.Data = append([]modelInfo{}, list...); len(list) > 0 {
		page.FirstID, page.LastID = &list[0].ID, &list[len(list)-1].ID
	}
	return page, nil
}

// getModel is GET /v1/models/{id...} with the header anthropic-version.
func (s *api) getModel(w http.ResponseWriter, r *http.Request) error {
	n, err := manifest.ParseName(r.PathValue("id"))
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
	info, _ := newModelInfo(entry.Name, entry.Image.Config, modified)
	info.ID = r.PathValue("id") // as the request spells it
	return wire.WriteJSON(w, info)
}
