package anthropic

import (
	"reflect"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openapi"
)

// endpoints are of Anthropic's API, https://platform.claude.com/docs/en/api/messages.
func (s *api) endpoints() []server.Endpoint {
	return []server.Endpoint{
		{Method: "POST", Path: "/v1/messages", Handle: s.messages,
			Operation: openapi.Operation{Summary: "Generate the next message of a conversation",
				Request: reflect.TypeFor[messagesRequest](), Required: []string{"model", "messages", "max_tokens"},
				Response: reflect.TypeFor[messageJSON](), Stream: reflect.TypeFor[messageEventJSON]()},
			Samples: []server.Sample{
				{Body: `{"stream":true,` + sampleRequest + `}`, Output: sampleOutput},
				{Body: `{` + sampleRequest + `,"system":"s","stop_sequences":["x"]}`, Output: sampleOutput},
			},
		},
		{Method: "POST", Path: "/v1/messages/count_tokens", Handle: s.countTokens,
			Operation: openapi.Operation{Summary: "Count the tokens of a conversation",
				Request: reflect.TypeFor[messagesRequest](), Required: []string{"model", "messages"},
				Response: reflect.TypeFor[inputTokensJSON]()},
			Samples: []server.Sample{{Body: `{"model":"talk","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Hi"}]}]}`}},
		},
		{Method: "GET", Path: "/v1/models", Header: versionHeader, Handle: s.listModels,
			Operation: openapi.Operation{Summary: "List the models of the store in Anthropic's form",
				Query: "limit At most so many models, 20 by default.\nafter_id Models that follow this one.\n" +
					"before_id Models that stand before this one.\nlifecycle Models at this stage; all are active.",
				Response: reflect.TypeFor[modelList]()},
			Samples: []server.Sample{{}, {Path: "/v1/models?limit=1"}},
		},
		{Method: "GET", Path: "/v1/models/{id...}", Header: versionHeader, Handle: s.getModel,
			Operation: openapi.Operation{Summary: "Describe a model in Anthropic's form",
				Response: reflect.TypeFor[modelInfo]()},
			Samples: []server.Sample{{Path: "/v1/models/talk"}},
		},
	}
}

// sampleRequest is a request with tools that sampleOutput calls.
const sampleRequest = `"model":"talk","max_tokens":50,"messages":[{"role":"user","content":"Hi"}],` +
	`"thinking":{"type":"enabled","budget_tokens":1024},` +
	`"tools":[{"name":"f","description":"F.","input_schema":{"type":"object"}},` +
	`{"name":"g","input_schema":{"type":"object","properties":{}}}]`

// sampleOutput is the output of a model that thinks, writes text, and calls two tools.
var sampleOutput = []string{"<think>\nhm", " hm", "</think>\n\n", "Let me", " see.\n\n",
	`<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`,
	"\n", `<tool_call>{"name": "g", "arguments": {}}</tool_call>`}
