package server

import "reflect"

// openaiEndpoints: OpenAI's API, https://platform.openai.com/docs/api-reference.
func (s *Server) openaiEndpoints() []endpoint {
	return []endpoint{
		{method: "POST", path: "/v1/chat/completions", handle: s.chatCompletions,
			operation: operation{summary: "Generate the next message of a conversation",
				request: reflect.TypeFor[chatCompletion](), required: []string{"model", "messages"},
				response: reflect.TypeFor[chatCompletionJSON](), stream: reflect.TypeFor[chatCompletionJSON]()},
			samples: []sample{
				{body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"stream":true,` +
					`"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":1,` + sampleTools + `}`, output: callingOutput},
				{body: `{"model":"talk","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"n":2,"stop":"x",` +
					`"seed":1,"reasoning_effort":"low",` + sampleTools + `}`, output: callingOutput},
				{body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_object"},` +
					`"logprobs":true}`},
			},
		},
		{method: "POST", path: "/v1/completions", handle: s.completions,
			operation: operation{summary: "Complete prompts",
				request: reflect.TypeFor[textCompletion](), required: []string{"model", "prompt"},
				response: reflect.TypeFor[textCompletionJSON](), stream: reflect.TypeFor[textCompletionJSON]()},
			samples: []sample{
				{body: `{"model":"plain","prompt":["Once","Twice"],"stream":true,"logprobs":1,` +
					`"stream_options":{"include_usage":true}}`},
				{body: `{"model":"plain","prompt":[5,6],"echo":true,"max_tokens":5,"logit_bias":{"5":1}}`},
				{body: `{"model":"plain","prompt":"Once","logprobs":2}`},
			},
		},
		{method: "POST", path: "/v1/responses", handle: s.responses,
			operation: operation{summary: "Generate a response to a text or items",
				request: reflect.TypeFor[responseRequest](), required: []string{"model", "input"},
				response: reflect.TypeFor[responseJSON](), stream: reflect.TypeFor[responseEvent]()},
			samples: []sample{
				{body: `{"model":"talk","input":"Hi","stream":true,"include":["reasoning.encrypted_content",` +
					`"message.output_text.logprobs"],"tools":[{"type":"function","name":"f"}]}`, output: callingOutput},
				{body: `{"model":"talk","input":[{"type":"message","role":"user","content":"Hi"}],"instructions":"s",` +
					`"tools":[{"type":"function","name":"f"}],"max_output_tokens":9,"reasoning":{"effort":"low"}}`, output: callingOutput},
			},
		},
		{method: "POST", path: "/v1/embeddings", handle: s.openaiEmbed,
			operation: operation{summary: "Embed texts",
				request: reflect.TypeFor[openaiEmbedRequest](), required: []string{"model", "input"},
				response: reflect.TypeFor[openaiEmbedJSON]()},
			samples: []sample{{body: `{"model":"plain","input":[[5,6],[7]]}`},
				{body: `{"model":"plain","input":"a","encoding_format":"base64"}`}},
		},
		{method: "GET", path: "/v1/models", handle: s.listModels,
			operation: operation{summary: "List the models of the store", response: reflect.TypeFor[openAIModels]()},
			samples:   []sample{{}},
		},
		{method: "GET", path: "/v1/models/{id...}", handle: s.getModel,
			operation: operation{summary: "Describe a model", response: reflect.TypeFor[openAIModel]()},
			samples:   []sample{{path: "/v1/models/talk"}},
		},
	}
}

// sampleTools declares the tool that callingOutput calls.
const sampleTools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
