package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
)

// Found is a repository that a search lists.
type Found struct {
	Name       Name
	ModelType  string           // model_type of its config.json
	Downloads  int64            // of the last 30 days
	Gated      bool             // its licence has to be accepted first
	Parameters map[string]int64 // numbers of elements by safetensors type
	Quantized  bool             // its config.json says that it is quantized
}

// Search lists repositories with safetensors weights whose names contain a text, the most downloaded first.
func (c *Client) Search(ctx context.Context, text string, limit int) ([]Found, error) {
	if c.opts.Offline {
		return nil, fmt.Errorf("search: %w: HF_HUB_OFFLINE is set; unset it", ErrOffline)
	}
	u, err := url.Parse(c.opts.Endpoint + "/api/models?" + url.Values{
		"search": {text}, "limit": {strconv.Itoa(limit)}, "filter": {"safetensors"}, "sort": {"downloads"},
		"expand": {"config", "safetensors", "downloads", "gated"},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var list bounded[struct {
		ID          string
		Downloads   int64
		Gated       json.RawMessage // false, "auto" or "manual"
		Safetensors struct{ Parameters map[string]int64 }
		Config      struct {
			ModelType    string          `json:"model_type"`
			Quantization json.RawMessage `json:"quantization_config"`
		}
	}]
	if _, _, err := c.document(ctx, call{what: "search", url: u, host: HuggingFace}, &list); err != nil {
		return nil, err
	}
	var out []Found
	for _, m := range list {
		n, err := ParseName(HuggingFace + "/" + m.ID)
		if err != nil {
			continue // it cannot be opened
		}
		out = append(out, Found{
			Name: n, ModelType: m.Config.ModelType, Downloads: m.Downloads, Gated: len(m.Gated) > 0 && m.Gated[0] == '"',
			Parameters: m.Safetensors.Parameters, Quantized: len(m.Config.Quantization) > 0,
		})
	}
	return out, nil
}
