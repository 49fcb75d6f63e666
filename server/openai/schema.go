package openai

import (
	"encoding/json"
	"net/http"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// schemaCheckRequest is the body of /v1/schema/check, an extension: a line of ingot schema check --jsonl.
type schemaCheckRequest struct {
	Schema    json.RawMessage   `json:"schema"`
	Instances []json.RawMessage `json:"instances"`
	params.SchemaOptions
}

// checkSchema is POST /v1/schema/check. It needs no model. A schema that is refused is a response, not an error.
func (s *api) checkSchema(w http.ResponseWriter, r *http.Request) error {
	var q schemaCheckRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if len(q.Schema) == 0 {
		return wire.BadParam("schema", "missing")
	}
	instances := make([][]byte, len(q.Instances))
	for i, text := range q.Instances {
		instances[i] = text
	}
	check := grammar.CheckSchema(r.Context(), q.Schema, instances,
		grammar.SchemaOptions{Strict: q.StrictSchema, BestEffort: q.BestEffort})
	if err := r.Context().Err(); err != nil {
		return err
	}
	return wire.WriteJSON(w, check)
}
