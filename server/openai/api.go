// Package openai has OpenAI's API: chat completions, completions, responses, embeddings and models,
// https://platform.openai.com/docs/api-reference as of November 2026.
//
// Contract: extensions, ours and those of other servers, are marked. A parameter that would change the response and is
// not implemented is an error. Responses are stored in memory if a request says so (package stored); nothing else is.
package openai

import (
	"net/http"
	"sync/atomic"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/wire"
)

// api has the API's handlers.
type api struct {
	core *server.Server
	opts server.Options

	stored     *stored.Store
	background atomic.Int32 // responses that are generated after their request
}

// New returns the API over a server.
func New(s *server.Server) server.API {
	a := &api{core: s, opts: s.Options(), stored: stored.New(limits.StoredResponses, limits.StoredSize)}
	return server.API{Endpoints: a.endpoints(), Schemas: schemas,
		Dialects: wire.Dialects{{Prefix: "/v1/", Body: openAIError, Busy: http.StatusServiceUnavailable}}}
}
