package anthropic

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
)

// messageEvent is an event of a stream of Anthropic's API.
type messageEvent struct {
	name string
	data map[string]any
}

// messageEvents decodes a stream, and checks that the data of each event repeats its type.
func messageEvents(t *testing.T, text string) (list []messageEvent) {
	t.Helper()
	for _, e := range servertest.Events(t, text) {
		m := messageEvent{e.Name, servertest.Decode[map[string]any](t, e.Data)}
		if m.data["type"] != m.name {
			t.Errorf("event %s has the data %s", e.Name, e.Data)
		}
		list = append(list, m)
	}
	return list
}

func TestMessagesStream(t *testing.T) {
	f := serve(t, nil)
	f.Says = sampleOutput
	status, text := f.Ask(t, "POST", "/v1/messages", `{"stream":true,`+sampleRequest+`}`)
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	var got []string
	for _, e := range messageEvents(t, text) {
		line := e.name
		for _, key := range []string{"content_block", "delta"} {
			if part, ok := e.data[key].(map[string]any); ok {
				delete(part, "id")
				b, err := wire.Encode(part)
				if err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprint(" ", e.data["index"], " ", strings.TrimSpace(string(b)))
			}
		}
		if line == "content_block_stop" {
			line += fmt.Sprint(" ", e.data["index"])
		}
		if m, ok := e.data["message"].(map[string]any); ok {
			if m["content"] == nil || len(m["content"].([]any)) > 0 || m["stop_reason"] != nil ||
				m["usage"].(map[string]any)["input_tokens"].(float64) < 5 {
				t.Errorf("the stream starts with %v", m)
			}
		}
		if u, ok := e.data["usage"].(map[string]any); ok && (u["output_tokens"] != 8. || u["cache_read_input_tokens"] != 0.) {
			t.Errorf("the stream ends with %v", u)
		}
		got = append(got, line)
	}
	want := []string{
		`message_start`,
		`content_block_start 0 {"signature":"","thinking":"","type":"thinking"}`,
		`content_block_delta 0 {"thinking":"hm","type":"thinking_delta"}`,
		`content_block_delta 0 {"thinking":" hm","type":"thinking_delta"}`,
		`content_block_delta 0 {"signature":"ingot","type":"signature_delta"}`,
		`content_block_stop 0`,
		`content_block_start 1 {"text":"","type":"text"}`,
		`content_block_delta 1 {"text":"Let me","type":"text_delta"}`,
		`content_block_delta 1 {"text":" see.","type":"text_delta"}`,
		`content_block_stop 1`,
		`content_block_start 2 {"input":{},"name":"f","type":"tool_use"}`,
		`content_block_delta 2 {"partial_json":"{\"x\":1}","type":"input_json_delta"}`,
		`content_block_stop 2`,
		`content_block_start 3 {"input":{},"name":"g","type":"tool_use"}`,
		`content_block_delta 3 {"partial_json":"{}","type":"input_json_delta"}`,
		`content_block_stop 3`,
		`message_delta <nil> {"stop_reason":"tool_use","stop_sequence":null}`,
		`message_stop`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Pings fill silence, also before the first token. After a ping, an error is sent as an event.
func TestMessagesPings(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Timeout = 200 * time.Millisecond })
	f.Says, f.Fail, f.Wait = []string{"hm"}, runner.ErrDied, make(chan struct{})
	response, err := http.Post(f.URL+"/v1/messages", "application/json",
		strings.NewReader(`{"model":"plain","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	b := make([]byte, 1024)
	for strings.Count(text.String(), "event: ping") < 2 {
		n, err := response.Body.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b[:n])
	}
	close(f.Wait)
	rest, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	list := messageEvents(t, text.String()+string(rest))
	if list[0].name != "message_start" || list[1].name != "ping" || list[len(list)-1].name != "error" {
		t.Errorf("%v", list)
	}
}

func TestMessagesStop(t *testing.T) {
	sequence := "x"
	for _, c := range []struct {
		o    server.Outcome
		want string
		at   *string
	}{
		{server.Outcome{Done: runtime.DoneStop}, stopEnd, nil},
		{server.Outcome{Done: runtime.DoneStop, Stop: "x"}, stopSequence, &sequence},
		{server.Outcome{Done: runtime.DoneStop, Stop: "the model's"}, stopEnd, nil},
		{server.Outcome{Done: runtime.DoneLength, Stats: runtime.Stats{Tokens: 9}, Calls: 1}, stopLength, nil},
		{server.Outcome{Done: runtime.DoneLength, Stats: runtime.Stats{Tokens: 8}}, stopContext, nil},
		{server.Outcome{Done: runtime.DoneStop, Calls: 1}, stopTool, nil},
	} {
		q := messagesRequest{MaxTokens: new(9), StopSequences: []string{"", "x"}}
		if diff := cmp.Diff(endDelta{&c.want, c.at}, q.stopReason(c.o)); diff != "" {
			t.Errorf("%+v: %s", c.o, diff)
		}
	}
}
