package server

import (
	"reflect"

	"github.com/ingotml/ingot/server/identity"
)

// operation describes a route in the OpenAPI document. Its types are those that the route's handler decodes and
// encodes.
type operation struct {
	summary  string
	request  reflect.Type // of the body; nil: none
	required []string     // required members of the request
	file     bool         // the body is a file
	query    string       // name and description of a query parameter, separated by a space
	response reflect.Type // of the response; nil: text or nothing
	stream   reflect.Type // of a message of the stream; nil: no stream
	media    string       // media type of a response that is not JSON; else ""
	created  bool         // the status may be 201
}

// Media types.
const (
	sseType  = "text/event-stream"
	textType = "text/plain"
	anyType  = "*/*"
)

// operations describes the routes, keyed by method and path as in list.
var operations = map[string]operation{
	"GET /{$}":          {summary: "Get the web page if HTML is accepted by name, else a line of text", media: textType},
	"GET /page/{name}":  {summary: "Get a file of the web page; needs no key", media: anyType},
	"GET /healthz":      {summary: "Check that the process is alive; needs no key", media: textType},
	"GET /readyz":       {summary: "Check that requests are accepted; needs no key", media: textType},
	"GET /metrics":      {summary: "Get metrics in Prometheus' text format", media: textType},
	"GET /openapi.json": {summary: "Get this document", response: reflect.TypeFor[map[string]any]()},

	// Ollama's API, https://docs.ollama.com/api.
	"GET /api/version": {summary: "Get the version and the id of the store", response: reflect.TypeFor[VersionJSON]()},
	"GET /api/prove": {summary: "Prove to a client of the same user that this server serves its store; needs no key",
		query: "nonce 64 random hexadecimal digits", response: reflect.TypeFor[identity.ProofJSON]()},
	"GET /api/tags": {summary: "List the models of the store", response: reflect.TypeFor[tagsJSON]()},
	"GET /api/ps": {summary: "List the loaded models",
		query: "verbose true: include usage", response: reflect.TypeFor[PsJSON]()},
	"POST /api/show": {summary: "Describe a model",
		request: reflect.TypeFor[showRequest](), response: reflect.TypeFor[showJSON]()},
	"GET /api/layers": {summary: "List the layers of a model's image; an extension",
		query: "model the model's name", response: reflect.TypeFor[layersJSON]()},
	"POST /api/copy": {summary: "Give a model a second name",
		request: reflect.TypeFor[copyRequest](), required: []string{"source", "destination"}},
	"DELETE /api/delete": {summary: "Delete a name, and the blobs that only it uses",
		request: reflect.TypeFor[deleteRequest]()},
	"POST /api/create": {summary: "Create a model from uploaded files or from another model",
		request:  reflect.TypeFor[createRequest](),
		response: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"HEAD /api/blobs/{digest}": {summary: "Check whether a file exists"},
	"POST /api/blobs/{digest}": {summary: "Upload a file for a later create", file: true, created: true},
	"POST /api/pull": {summary: "Pull a model from the registry in its name",
		request:  reflect.TypeFor[transferRequest](),
		response: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"POST /api/push": {summary: "Push a model to the registry in its name",
		request:  reflect.TypeFor[transferRequest](),
		response: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"POST /api/generate": {summary: "Complete a prompt",
		request: reflect.TypeFor[generateRequest](), required: []string{"model"},
		response: reflect.TypeFor[generateJSON](), stream: reflect.TypeFor[generateJSON]()},
	"POST /api/chat": {summary: "Generate the next message of a conversation",
		request: reflect.TypeFor[chatRequest](), required: []string{"model"},
		response: reflect.TypeFor[chatJSON](), stream: reflect.TypeFor[chatJSON]()},
	"POST /api/embed": {summary: "Embed texts",
		request: reflect.TypeFor[embedRequest](), required: []string{"model"},
		response: reflect.TypeFor[embedJSON]()},
	"POST /api/embeddings": {summary: "Embed a text",
		request: reflect.TypeFor[embeddingRequest](), required: []string{"model"},
		response: reflect.TypeFor[embeddingJSON]()},

	// OpenAI's API, https://platform.openai.com/docs/api-reference.
	"POST /v1/chat/completions": {summary: "Generate the next message of a conversation",
		request: reflect.TypeFor[chatCompletion](), required: []string{"model", "messages"},
		response: reflect.TypeFor[chatCompletionJSON](), stream: reflect.TypeFor[chatCompletionJSON]()},
	"POST /v1/completions": {summary: "Complete prompts",
		request: reflect.TypeFor[textCompletion](), required: []string{"model", "prompt"},
		response: reflect.TypeFor[textCompletionJSON](), stream: reflect.TypeFor[textCompletionJSON]()},
	"POST /v1/responses": {summary: "Generate a response to a text or items",
		request: reflect.TypeFor[responseRequest](), required: []string{"model", "input"},
		response: reflect.TypeFor[responseJSON](), stream: reflect.TypeFor[responseEvent]()},
	"POST /v1/embeddings": {summary: "Embed texts",
		request: reflect.TypeFor[openaiEmbedRequest](), required: []string{"model", "input"},
		response: reflect.TypeFor[openaiEmbedJSON]()},
	"GET /v1/models":         {summary: "List the models of the store", response: reflect.TypeFor[openAIModels]()},
	"GET /v1/models/{id...}": {summary: "Describe a model", response: reflect.TypeFor[openAIModel]()},

	// Anthropic's API, https://platform.claude.com/docs/en/api/messages.
	"POST /v1/messages": {summary: "Generate the next message of a conversation",
		request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages", "max_tokens"},
		response: reflect.TypeFor[messageJSON](), stream: reflect.TypeFor[messageEventJSON]()},
	"POST /v1/messages/count_tokens": {summary: "Count the tokens of a conversation",
		request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages"},
		response: reflect.TypeFor[inputTokensJSON]()},

	// vLLM's names.
	"POST /v1/tokenize": {summary: "Tokenize a text or a conversation",
		request: reflect.TypeFor[tokenizeRequest](), required: []string{"model"},
		response: reflect.TypeFor[tokenizeJSON]()},
	"POST /v1/detokenize": {summary: "Convert tokens to text",
		request: reflect.TypeFor[detokenizeRequest](), required: []string{"model", "tokens"},
		response: reflect.TypeFor[detokenizeJSON]()},
}

// messageEventJSON has the members of all event types of /v1/messages.
type messageEventJSON struct {
	Type    string         `json:"type"`
	Index   *int           `json:"index,omitempty"`
	Message *messageJSON   `json:"message,omitempty"`
	Block   *blockJSON     `json:"content_block,omitempty"`
	Delta   *anyDeltaJSON  `json:"delta,omitempty"`
	Usage   *messagesUsage `json:"usage,omitempty"`
}

// anyDeltaJSON is an increment of a block, or how the message ended.
type anyDeltaJSON struct {
	Type         string  `json:"type,omitempty"`
	Text         *string `json:"text,omitempty"`
	Thinking     *string `json:"thinking,omitempty"`
	Signature    *string `json:"signature,omitempty"`
	Partial      *string `json:"partial_json,omitempty"`
	StopReason   *string `json:"stop_reason,omitempty"`
	StopSequence *string `json:"stop_sequence,omitempty"`
}

// inputTokensJSON is the response of /v1/messages/count_tokens.
type inputTokensJSON struct {
	Tokens int `json:"input_tokens"`
}
