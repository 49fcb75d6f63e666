// Package all puts the server together: the core and every API.
//
// Contract: an API depends on the core (package server) and on no other API. To add one, add it to [APIs].
package all

import (
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/anthropic"
	"github.com/ingotml/ingot/server/offline"
	"github.com/ingotml/ingot/server/ollama"
	"github.com/ingotml/ingot/server/openai"
)

// APIs are all APIs.
var APIs = []func(*server.Server) server.API{ollama.New, openai.New, anthropic.New, offline.New}

// New returns a server with all APIs. The caller must call Close or Shutdown.
func New(o server.Options) *server.Server { return server.New(o, APIs...) }
