// Package ollama has Ollama's API, https://docs.ollama.com/api as of 0.33, and tokenizing with the names of vLLM's
// server.
//
// Contract: extensions of Ollama's API are marked. A request is never a path on this machine. Parameters of other
// engines are ignored.
package ollama

import (
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
)

// api has the API's handlers.
type api struct {
	core *server.Server
	opts server.Options

	buildSlot   chan struct{} // buffered, one element: a build is running
	uploadSlots chan struct{} // buffered: an element for each running upload
	facts       factsCache
}

// New returns the API over a server.
func New(s *server.Server) server.API { return newAPI(s).describe() }

func newAPI(s *server.Server) *api {
	return &api{core: s, opts: s.Options(),
		buildSlot:   make(chan struct{}, 1),
		uploadSlots: make(chan struct{}, limits.UploadsAtOnce),
	}
}

func (s *api) describe() server.API { return server.API{Endpoints: s.endpoints(), Schemas: schemas} }
