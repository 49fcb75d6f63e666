// Package settings is what an image holds beside weights and configuration: the texts and settings of a Modelfile, and
// the record of its creator's choices.
//
// Contract:
//   - [Read] reads them from a model in the store. [Texts.Modelfile] is its inverse: a Modelfile that creates the same
//     image again.
//   - The names of the files in an image are part of its format: they decide digests.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Files of an image that hold settings.
const (
	RecordName     = "ingot.json"
	ParamsName     = "params.json"
	TemplateName   = "template"
	SystemName     = "system"
	MessagesName   = "messages.json"
	GenerationName = "generation_config.json" // the checkpoint's
)

// MaxFile bounds the files that are held in memory.
const MaxFile = limits.ModelFile

// Record is the JSON file with the creator's choices for an image. An image without such choices has none.
type Record struct {
	Parser       string            `json:"parser,omitempty"`       // of responses
	Renderer     string            `json:"renderer,omitempty"`     // of prompts
	Requires     string            `json:"requires,omitempty"`     // minimum program version
	Quantization *recipe.Precision `json:"quantization,omitempty"` // as requested; each blob describes its own type
}

// Message is an initial message of every conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// DecodeParameters decodes a file of parameters. Numbers keep their digits.
func DecodeParameters(data []byte) (map[string]any, error) {
	var params map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return nil, errors.New(pyjson.Words(err, data))
	}
	return params, nil
}
