package server

import "reflect"

// anthropicEndpoints: Anthropic's API, https://platform.claude.com/docs/en/api/messages.
func (s *Server) anthropicEndpoints() []endpoint {
	return []endpoint{
		{method: "POST", path: "/v1/messages", handle: s.messages,
			operation: operation{summary: "Generate the next message of a conversation",
				request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages", "max_tokens"},
				response: reflect.TypeFor[messageJSON](), stream: reflect.TypeFor[messageEventJSON]()},
			samples: []sample{
				{body: `{"stream":true,` + sampleRequest + `}`, output: sampleOutput},
				{body: `{` + sampleRequest + `,"system":"s","stop_sequences":["x"]}`, output: sampleOutput},
			},
		},
		{method: "POST", path: "/v1/messages/count_tokens", handle: s.countTokens,
			operation: operation{summary: "Count the tokens of a conversation",
				request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages"},
				response: reflect.TypeFor[inputTokensJSON]()},
			samples: []sample{{body: `{"model":"talk","messages":[{"role":"user","content":[{"type":"text",` +
				`"text":"Hi"}]}]}`}},
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
