package openai

import (
	"reflect"

	"github.com/ingotml/ingot/grammar"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openapi"
)

// endpoints are of OpenAI's API, https://platform.openai.com/docs/api-reference.
func (s *api) endpoints() []server.Endpoint {
	return []server.Endpoint{
		{Method: "POST", Path: "/v1/chat/completions", Handle: s.chatCompletions,
			Operation: openapi.Operation{Summary: "Generate the next message of a conversation",
				Request: reflect.TypeFor[chatCompletion](), Required: []string{"model", "messages"},
				Response: reflect.TypeFor[chatCompletionJSON](), Stream: reflect.TypeFor[chatCompletionJSON]()},
			Samples: []server.Sample{
				{Body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"stream":true,` +
					`"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":1,` + sampleTools + `}`,
					Output: server.CallingOutput},
				{Body: `{"model":"talk","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"n":2,"stop":"x",` +
					`"seed":1,"reasoning_effort":"low",` + sampleTools + `}`, Output: server.CallingOutput},
				{Body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"functions":[{"name":"f"}]}`,
					Output: server.CallingOutput},
				{Body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"custom",` +
					`"custom":{"name":"f"}}]}`, Output: server.CallingOutput},
				{Body: `{"model":"talk","messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_object"},` +
					`"logprobs":true}`},
			},
		},
		{Method: "POST", Path: "/v1/completions", Handle: s.completions,
			Operation: openapi.Operation{Summary: "Complete prompts",
				Request: reflect.TypeFor[textCompletion](), Required: []string{"model", "prompt"},
				Response: reflect.TypeFor[textCompletionJSON](), Stream: reflect.TypeFor[textCompletionJSON]()},
			Samples: []server.Sample{
				{Body: `{"model":"plain","prompt":["Once","Twice"],"stream":true,"logprobs":1,` +
					`"stream_options":{"include_usage":true}}`},
				{Body: `{"model":"plain","prompt":[5,6],"echo":true,"max_tokens":5,"logit_bias":{"5":1}}`},
				{Body: `{"model":"plain","prompt":["Once","Twice"],"echo":true,"logprobs":1,"max_tokens":0}`},
				{Body: `{"model":"plain","prompt":"Once","echo":true,"logprobs":1,"stream":true}`},
				{Body: `{"model":"plain","prompt":"Once","logprobs":2}`},
			},
		},
		{Method: "POST", Path: "/v1/responses", Handle: s.responses,
			Operation: openapi.Operation{Summary: "Generate a response to a text or items",
				Request: reflect.TypeFor[responseRequest](), Required: []string{"model", "input"},
				Response: reflect.TypeFor[responseJSON](), Stream: reflect.TypeFor[responseEvent]()},
			Samples: []server.Sample{
				{Body: `{"model":"talk","input":"Hi","stream":true,"include":["reasoning.encrypted_content",` +
					`"message.output_text.logprobs"],"tools":[{"type":"function","name":"f"}]}`, Output: server.CallingOutput},
				{Body: `{"model":"talk","input":"Hi","stream":true,"tools":[{"type":"custom","name":"f"}]}`,
					Output: server.CallingOutput},
				{Body: `{"model":"talk","input":[{"type":"message","role":"user","content":"Hi"}],"instructions":"s",` +
					`"tools":[{"type":"function","name":"f"}],"max_output_tokens":9,"reasoning":{"effort":"low"}}`,
					Output: server.CallingOutput},
			},
		},
		{Method: "GET", Path: "/v1/responses/{id}", Handle: s.getResponse,
			Operation: openapi.Operation{Summary: "Return a stored response", Response: reflect.TypeFor[responseJSON]()},
			Samples:   sampleStored},
		{Method: "DELETE", Path: "/v1/responses/{id}", Handle: s.deleteResponse,
			Operation: openapi.Operation{Summary: "Delete a stored response", Response: reflect.TypeFor[deletedJSON]()},
			Samples:   sampleStored},
		{Method: "POST", Path: "/v1/responses/{id}/cancel", Handle: s.cancelResponse,
			Operation: openapi.Operation{Summary: "Cancel a stored response that is in progress",
				Response: reflect.TypeFor[responseJSON]()}},
		{Method: "GET", Path: "/v1/responses/{id}/input_items", Handle: s.listItems,
			Operation: openapi.Operation{Summary: "List the items that a stored response answers",
				Query: "limit of items; also after (an id) and order (asc or desc)", Response: reflect.TypeFor[itemListJSON]()},
			Samples: sampleStored},
		{Method: "POST", Path: "/v1/responses/input_tokens", Handle: s.countInput,
			Operation: openapi.Operation{Summary: "Count the tokens of a response's input",
				Request: reflect.TypeFor[inputCountRequest](), Required: []string{"model", "input"},
				Response: reflect.TypeFor[inputCountJSON]()},
			Samples: []server.Sample{{Body: `{"model":"talk","input":"Hi","instructions":"s"}`}},
		},
		{Method: "POST", Path: "/v1/responses/compact", Handle: s.compact,
			Operation: openapi.Operation{Summary: "Sum up a conversation so that it can go on with fewer tokens",
				Request: reflect.TypeFor[compactRequest](), Required: []string{"model", "input"},
				Response: reflect.TypeFor[compactJSON]()},
			Samples: []server.Sample{{Body: `{"model":"talk","input":"Hi"}`}},
		},
		{Method: "POST", Path: "/v1/embeddings", Handle: s.openaiEmbed,
			Operation: openapi.Operation{Summary: "Embed texts",
				Request: reflect.TypeFor[openaiEmbedRequest](), Required: []string{"model", "input"},
				Response: reflect.TypeFor[openaiEmbedJSON]()},
			Samples: []server.Sample{{Body: `{"model":"plain","input":[[5,6],[7]]}`},
				{Body: `{"model":"plain","input":"a","encoding_format":"base64"}`}},
		},
		{Method: "POST", Path: "/v1/schema/check", Handle: s.checkSchema,
			Operation: openapi.Operation{Summary: "Say whether a JSON schema compiles and what it accepts; an extension",
				Request: reflect.TypeFor[schemaCheckRequest](), Required: []string{"schema"},
				Response: reflect.TypeFor[grammar.SchemaCheck]()},
			Samples: []server.Sample{
				{Body: `{"schema":{"type":"object","properties":{"a":{"type":"integer"}}},"instances":[{"a":1},{"a":"x"}]}`},
				{Body: `{"schema":{"not":{"uniqueItems":true}},"best_effort":true}`},
			},
		},
		{Method: "GET", Path: "/v1/models", Handle: s.listModels,
			Operation: openapi.Operation{Summary: "List the models of the store", Response: reflect.TypeFor[openAIModels]()},
			Samples:   []server.Sample{{}},
		},
		{Method: "GET", Path: "/v1/models/{id...}", Handle: s.getModel,
			Operation: openapi.Operation{Summary: "Describe a model", Response: reflect.TypeFor[openAIModel]()},
			Samples:   []server.Sample{{Path: "/v1/models/talk"}},
		},
	}
}

// sampleTools declares the tool that callingOutput calls.
const sampleTools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`

// sampleStored is a request about a response that is stored.
var sampleStored = []server.Sample{{Stores: `{"model":"talk","input":"Hi","store":true,"background":true}`}}
