package interop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const (
	story = "Once upon a time"
	// toolTemplate is a template with system texts, tools and thinking, for a model that was not trained for them.
	toolTemplate = "\nTEMPLATE \"\"\"{% for t in tools or [] %}{{ t.function.name }} {% endfor %}" +
		"{% for m in messages %}{{ m.content }} {% endfor %}\"\"\"\nPARSER qwen3\n"
)

// object returns the JSON schema of an object with a number.
func object() map[string]any {
	return map[string]any{"type": "object",
		"properties": map[string]any{"n": map[string]any{"type": "integer", "minimum": 0, "maximum": 99}},
		"required":   []string{"n"}, "additionalProperties": false}
}

func number(t *testing.T, text string) {
	t.Helper()
	var v struct{ N *int }
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.N == nil {
		t.Errorf("%q: %v, want an object with n", text, err)
	}
}

// TestOpenAI runs OpenAI's Go client against `ingot serve`.
func TestOpenAI(t *testing.T) {
	u := newUser(t)
	u.create("story", "demo")
	u.create("sees", "qwen3_5-vision")
	file := filepath.Join(u.home, "Modelfile")
	if err := os.WriteFile(file, []byte("FROM "+checkpoint(t, "demo")+toolTemplate), 0o644); err != nil {
		t.Fatal(err)
	}
	u.ingot("create", "talk", "-f", file)
	s := u.serve()
	client := openai.NewClient(option.WithBaseURL(s.origin+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	chat := func(model, text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: model,
			Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
			Temperature: openai.Float(0), MaxTokens: openai.Int(12)}
	}
	ask := func(t *testing.T, p openai.ChatCompletionNewParams) openai.ChatCompletion {
		t.Helper()
		response, err := client.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(response.Choices) != 1 || response.Usage.CompletionTokens == 0 {
			t.Fatalf("response %s", response.RawJSON())
		}
		return *response
	}

	t.Run("chat", func(t *testing.T) {
		whole := ask(t, chat("story", story))
		text := whole.Choices[0].Message.Content
		if !strings.Contains(text, "there was") || whole.Choices[0].FinishReason != "length" ||
			whole.Usage.CompletionTokens != 12 {
			t.Errorf("%s", whole.RawJSON())
		}
		p := chat("story", story)
		p.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				t.Errorf("an unexpected chunk: %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil || all.Choices[0].Message.Content != text || all.Usage.CompletionTokens != 12 {
			t.Errorf("the stream: %v, %+v; want %q", err, all.Choices, text)
		}
	})
	t.Run("tools", func(t *testing.T) {
		p := chat("talk", "A number.")
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "take", Parameters: object(), Strict: openai.Bool(true)})}
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(
			openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "take"})
		p.MaxTokens = openai.Int(100)
		response := ask(t, p)
		calls := response.Choices[0].Message.ToolCalls
		if len(calls) != 1 || calls[0].Function.Name != "take" || response.Choices[0].FinishReason != "tool_calls" {
			t.Fatalf("%s", response.RawJSON())
		}
		number(t, calls[0].Function.Arguments)
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		var all openai.ChatCompletionAccumulator
		finished := false
		for stream.Next() {
			all.AddChunk(stream.Current())
			if call, ok := all.JustFinishedToolCall(); ok {
				finished = true
				number(t, call.Arguments)
			}
		}
		if err := stream.Err(); err != nil || !finished {
			t.Errorf("the stream: %v; a call has finished: %v", err, finished)
		}
		p = chat("talk", "A number.")
		p.Messages = append(p.Messages, response.Choices[0].Message.ToParam(), openai.ToolMessage("taken", calls[0].ID))
		ask(t, p)
	})
	t.Run("structured", func(t *testing.T) {
		p := chat("talk", "A number.")
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "number", Schema: object(),
				Strict: openai.Bool(true)}}
		number(t, ask(t, p).Choices[0].Message.Content)
	})
	t.Run("images", func(t *testing.T) {
		picture, err := os.ReadFile(filepath.Join("..", "testdata", "pictures", "shapes.png"))
		if err != nil {
			t.Fatal(err)
		}
		show := func(url string) openai.ChatCompletionNewParams {
			p := chat("sees", "")
			p.Messages[0] = openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.TextContentPart("What?"),
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url})})
			return p
		}
		blind := ask(t, chat("sees", "What?"))
		seen := ask(t, show("data:image/png;base64,"+base64.StdEncoding.EncodeToString(picture)))
		if seen.Usage.PromptTokens <= blind.Usage.PromptTokens {
			t.Errorf("%d tokens with a picture, %d without", seen.Usage.PromptTokens, blind.Usage.PromptTokens)
		}
		_, err = client.Chat.Completions.New(t.Context(), show("http://127.0.0.1:1/a.png"))
		wantAPIError(t, err, 400, "")
	})
	t.Run("completions", func(t *testing.T) {
		response, err := client.Completions.New(t.Context(), openai.CompletionNewParams{Model: "story",
			MaxTokens: openai.Int(8), Temperature: openai.Float(0),
			Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(story)}, Echo: openai.Bool(true)})
		if err != nil || len(response.Choices) != 1 || !strings.HasPrefix(response.Choices[0].Text, story) ||
			response.Usage.CompletionTokens != 8 {
			t.Errorf("%+v, %v", response, err)
		}
	})
	t.Run("responses", func(t *testing.T) {
		p := responses.ResponseNewParams{Model: "talk", Instructions: openai.String("Be kind."),
			MaxOutputTokens: openai.Int(100), Temperature: openai.Float(0),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("A number.")},
			Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("take", object(), true)},
			ToolChoice: responses.ResponseNewParamsToolChoiceUnion{
				OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "take"}}}
		response, err := client.Responses.New(t.Context(), p)
		if err != nil || response.Status != "completed" || len(response.Output) != 1 || response.Output[0].Name != "take" {
			t.Fatalf("%+v, %v", response, err)
		}
		number(t, response.Output[0].AsFunctionCall().Arguments)
		p.Tools, p.ToolChoice, p.MaxOutputTokens = nil, responses.ResponseNewParamsToolChoiceUnion{}, openai.Int(12)
		if response, err = client.Responses.New(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		stream := client.Responses.NewStreaming(t.Context(), p)
		var text, last string
		for stream.Next() {
			e := stream.Current()
			if last = e.Type; last == "response.output_text.delta" {
				text += e.Delta
			}
		}
		if err := stream.Err(); err != nil || text == "" || text != response.OutputText() || last != "response.incomplete" {
			t.Errorf("the stream says %q and ends with %s, %v; want %q", text, last, err, response.OutputText())
		}
	})
	t.Run("embeddings", func(t *testing.T) {
		p := openai.EmbeddingNewParams{Model: "story",
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{story, "The dog"}}}
		response, err := client.Embeddings.New(t.Context(), p)
		if err != nil || len(response.Data) != 2 || response.Usage.PromptTokens == 0 {
			t.Fatalf("%+v, %v", response, err)
		}
		for _, d := range response.Data {
			var norm float64
			for _, x := range d.Embedding {
				norm += x * x
			}
			if math.Abs(norm-1) > 1e-3 {
				t.Errorf("vector %d of %d numbers has the square norm %v", d.Index, len(d.Embedding), norm)
			}
		}
	})
	t.Run("models", func(t *testing.T) {
		var ids []string
		for pages := client.Models.ListAutoPaging(t.Context()); pages.Next(); {
			ids = append(ids, pages.Current().ID)
		}
		if len(ids) != 3 {
			t.Errorf("models %v", ids)
		}
		for _, id := range ids {
			if m, err := client.Models.Get(t.Context(), id); err != nil || m.ID != id {
				t.Errorf("%s: %+v, %v", id, m, err)
			}
		}
	})
	t.Run("errors", func(t *testing.T) {
		_, err := client.Chat.Completions.New(t.Context(), chat("nothing", story))
		wantAPIError(t, err, 404, "model_not_found")
		_, err = client.Chat.Completions.New(t.Context(), chat("story", strings.Repeat("word ", 600)))
		wantAPIError(t, err, 400, "context_length_exceeded")
		stream := client.Chat.Completions.NewStreaming(t.Context(), chat("nothing", story))
		for stream.Next() {
			t.Errorf("a chunk of an error: %s", stream.Current().RawJSON())
		}
		wantAPIError(t, stream.Err(), 404, "model_not_found")
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := chat("story", story)
		p.MaxTokens = openai.Int(400)
		stream := client.Chat.Completions.NewStreaming(ctx, p, option.WithJSONSet("ignore_eos", true))
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		cancel()
		for stream.Next() { // chunks that had arrived before
		}
		if err := stream.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the stream ended with %v", err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, requests := s.ps("story"); requests == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the request goes on")
			}
		}
	})
}

// wantAPIError checks an error of the API.
func wantAPIError(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code || e.Message == "" {
		t.Errorf("the error is %v, want status %d and the code %q", err, status, code)
	}
}
