package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// openaiEmbedRequest is the body of /v1/embeddings, https://platform.openai.com/docs/api-reference/embeddings.
type openaiEmbedRequest struct {
	Model      string        `json:"model"`
	Input      server.Inputs `json:"input"`
	Encoding   string        `json:"encoding_format"`
	Dimensions *int          `json:"dimensions"`
}

type openaiEmbedJSON struct {
	Object string            `json:"object"`
	Data   []openaiEmbedding `json:"data"`
	Model  string            `json:"model"`
	Usage  openaiEmbedUsage  `json:"usage"`
}

type openaiEmbedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or a base64 string
}

type openaiEmbedUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// openaiEmbed is POST /v1/embeddings.
func (s *api) openaiEmbed(w http.ResponseWriter, r *http.Request) error {
	var q openaiEmbedRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	v := server.EmbedRequest{Input: q.Input}
	switch {
	case q.Input.IsEmpty():
		return wire.BadRequest("input is missing or empty")
	case q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64":
		return wire.BadRequest("encoding_format is %q, must be float or base64", wire.Clip(q.Encoding))
	case q.Dimensions != nil && *q.Dimensions < 1:
		return wire.BadRequest("dimensions is %d, must be at least 1", *q.Dimensions)
	case q.Dimensions != nil:
		v.Dimensions = *q.Dimensions
	}
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	e, _, err := s.core.Embed(r.Context(), m, v)
	if err != nil {
		return err
	}
	out := openaiEmbedJSON{Object: "list", Model: m.RequestedName(), Usage: openaiEmbedUsage{e.Tokens, e.Tokens}}
	for i, x := range e.Vectors {
		one := openaiEmbedding{"embedding", i, x}
		if q.Encoding == "base64" {
			one.Embedding = base64Floats(x)
		}
		out.Data = append(out.Data, one)
	}
	return wire.WriteJSON(w, out)
}

// base64Floats encodes little-endian float32 values.
func base64Floats(x []float32) string {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}
