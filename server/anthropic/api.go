// Package anthropic has Anthropic's API: messages, their token counts and the list of models,
// https://platform.claude.com/docs/en/api/messages as of November 2026, version 2023-06-01.
//
// Contract: fields that do not change a response are ignored. Thinking is not signed. The keep-alives of streams are
// pings.
package anthropic

import (
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// api has the API's handlers.
type api struct {
	core *server.Server
	opts server.Options
}

// New returns the API over a server.
func New(s *server.Server) server.API {
	a := &api{core: s, opts: s.Options()}
	return server.API{Endpoints: a.endpoints(), Schemas: schemas,
		Dialects: wire.Dialects{
			{Prefix: "/v1/messages", Body: anthropicError, Busy: statusOverloaded, Dotted: true},
			{Prefix: "/v1/models", Header: versionHeader, Body: anthropicError, Busy: statusOverloaded, Dotted: true},
		}}
}
