package server

import (
	"reflect"

	"github.com/ingotml/ingot/server/identity"
)

// operation is what the OpenAPI document says of a route. Types are those that the route's handler reads and writes.
type operation struct {
	summary  string
	request  reflect.Type // of the body; nil: none
	required []string     // members of the request
	file     bool         // the body is a file
	query    string       // a parameter, and after a space what it is for
	answer   reflect.Type // nil: text, or nothing
	stream   reflect.Type // a message of a streamed answer; nil: there is none
	media    string       // of an answer that is no JSON; else ""
	created  bool         // the status may be 201
}

// Media types.
const (
	sseType  = "text/event-stream"
	textType = "text/plain"
	anyType  = "*/*"
)

// operations are the routes, by method and path as in list.
var operations = map[string]operation{
	"GET /{$}":          {summary: "Tell that the server is there; browsers, which accept HTML by name, get the page", media: textType},
	"GET /page/{name}":  {summary: "Give a part of the page; needs no key", media: anyType},
	"GET /healthz":      {summary: "Tell that the process lives; needs no key", media: textType},
	"GET /readyz":       {summary: "Tell that requests are taken; needs no key", media: textType},
	"GET /metrics":      {summary: "Give counts and histograms in Prometheus' text format", media: textType},
	"GET /openapi.json": {summary: "Give this document", answer: reflect.TypeFor[map[string]any]()},

	// Ollama's API, https://docs.ollama.com/api.
	"GET /api/version": {summary: "Tell the version, and which store is served", answer: reflect.TypeFor[VersionJSON]()},
	"GET /api/prove": {summary: "Prove to a client of the same user that this is the server of its store; needs no key",
		query: "nonce 64 hexadecimal digits, chosen at random", answer: reflect.TypeFor[identity.ProofJSON]()},
	"GET /api/tags":   {summary: "List the models of the store", answer: reflect.TypeFor[tagsJSON]()},
	"GET /api/ps":     {summary: "List the models that are loaded", query: "verbose true: what they do too", answer: reflect.TypeFor[PsJSON]()},
	"POST /api/show":  {summary: "Tell what a model is", request: reflect.TypeFor[showRequest](), answer: reflect.TypeFor[showJSON]()},
	"GET /api/layers": {summary: "List the layers of a model's image; ours", query: "model the model's name", answer: reflect.TypeFor[layersJSON]()},
	"POST /api/copy":  {summary: "Give a model a second name", request: reflect.TypeFor[copyRequest](), required: []string{"source", "destination"}},
	"DELETE /api/delete": {summary: "Remove a name, and what no other name needs",
		request: reflect.TypeFor[deleteRequest]()},
	"POST /api/create": {summary: "Make a model of files that were sent before, or of another model", request: reflect.TypeFor[createRequest](),
		answer: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"HEAD /api/blobs/{digest}": {summary: "Tell whether a file is here"},
	"POST /api/blobs/{digest}": {summary: "Send a file for a model that is to be made", file: true, created: true},
	"POST /api/pull": {summary: "Bring a model from a registry", request: reflect.TypeFor[transferRequest](),
		answer: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"POST /api/push": {summary: "Send a model to the registry that its name says", request: reflect.TypeFor[transferRequest](),
		answer: reflect.TypeFor[progressJSON](), stream: reflect.TypeFor[progressJSON]()},
	"POST /api/generate": {summary: "Continue a prompt", request: reflect.TypeFor[generateRequest](), required: []string{"model"},
		answer: reflect.TypeFor[generateJSON](), stream: reflect.TypeFor[generateJSON]()},
	"POST /api/chat": {summary: "Continue a conversation", request: reflect.TypeFor[chatRequest](), required: []string{"model"},
		answer: reflect.TypeFor[chatJSON](), stream: reflect.TypeFor[chatJSON]()},
	"POST /api/embed": {summary: "Give the vectors of texts", request: reflect.TypeFor[embedRequest](), required: []string{"model"},
		answer: reflect.TypeFor[embedJSON]()},
	"POST /api/embeddings": {summary: "Give the vector of a text", request: reflect.TypeFor[embeddingRequest](), required: []string{"model"},
		answer: reflect.TypeFor[embeddingJSON]()},

	// OpenAI's API, https://platform.openai.com/docs/api-reference.
	"POST /v1/chat/completions": {summary: "Continue a conversation", request: reflect.TypeFor[chatCompletion](), required: []string{"model", "messages"},
		answer: reflect.TypeFor[chatCompletionJSON](), stream: reflect.TypeFor[chatCompletionJSON]()},
	"POST /v1/completions": {summary: "Continue prompts", request: reflect.TypeFor[textCompletion](), required: []string{"model", "prompt"},
		answer: reflect.TypeFor[textCompletionJSON](), stream: reflect.TypeFor[textCompletionJSON]()},
	"POST /v1/responses": {summary: "Answer to items", request: reflect.TypeFor[responseRequest](), required: []string{"model", "input"},
		answer: reflect.TypeFor[responseJSON](), stream: reflect.TypeFor[responseEvent]()},
	"POST /v1/embeddings": {summary: "Give the vectors of texts", request: reflect.TypeFor[openaiEmbedRequest](), required: []string{"model", "input"},
		answer: reflect.TypeFor[openaiEmbedJSON]()},
	"GET /v1/models":         {summary: "List the models of the store", answer: reflect.TypeFor[openAIModels]()},
	"GET /v1/models/{id...}": {summary: "Tell of a model", answer: reflect.TypeFor[openAIModel]()},

	// Anthropic's API, https://platform.claude.com/docs/en/api/messages.
	"POST /v1/messages": {summary: "Continue a conversation", request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages", "max_tokens"},
		answer: reflect.TypeFor[messageJSON](), stream: reflect.TypeFor[messageEventJSON]()},
	"POST /v1/messages/count_tokens": {summary: "Count the tokens of a conversation", request: reflect.TypeFor[messagesRequest](), required: []string{"model", "messages"},
		answer: reflect.TypeFor[inputTokensJSON]()},

	// vLLM's names.
	"POST /v1/tokenize": {summary: "Give the tokens of a text or a conversation", request: reflect.TypeFor[tokenizeRequest](), required: []string{"model"},
		answer: reflect.TypeFor[tokenizeJSON]()},
	"POST /v1/detokenize": {summary: "Give the text of tokens", request: reflect.TypeFor[detokenizeRequest](), required: []string{"model", "tokens"},
		answer: reflect.TypeFor[detokenizeJSON]()},
}

// messageEventJSON has the members of all events of /v1/messages.
type messageEventJSON struct {
	Type    string         `json:"type"`
	Index   *int           `json:"index,omitempty"`
	Message *messageJSON   `json:"message,omitempty"`
	Block   *blockJSON     `json:"content_block,omitempty"`
	Delta   *anyDeltaJSON  `json:"delta,omitempty"`
	Usage   *messagesUsage `json:"usage,omitempty"`
}

// anyDeltaJSON is what has come of a block, or how the message ended.
type anyDeltaJSON struct {
	Type         string  `json:"type,omitempty"`
	Text         *string `json:"text,omitempty"`
	Thinking     *string `json:"thinking,omitempty"`
	Signature    *string `json:"signature,omitempty"`
	Partial      *string `json:"partial_json,omitempty"`
	StopReason   *string `json:"stop_reason,omitempty"`
	StopSequence *string `json:"stop_sequence,omitempty"`
}

// inputTokensJSON is the answer of /v1/messages/count_tokens.
type inputTokensJSON struct {
	Tokens int `json:"input_tokens"`
}
