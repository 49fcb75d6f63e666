package openai

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/server/servertest"
)

// A client that replaces what it has gathered by each response of an event, as OpenAI's package for Node does, misses
// nothing, wherever the model pauses: before the output, in thinking, in a text, and between items.
func TestResponseKeepAlives(t *testing.T) {
	const call = `<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`
	servertest.New(t, nil, New).Close() // makes the models
	for name, says := range map[string][]string{
		"before":   {"<think>\nhm</think>It is." + call},
		"thinking": {"<think>\nhm", "</think>It is." + call},
		"text":     {"<think>\nhm</think>It", " is." + call},
		"call":     {"<think>\nhm</think>It is." + call, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := servertest.New(t, nil, New)
				defer f.Close()
				f.Says, f.Wait = says, make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(f.Wait) })
				w := httptest.NewRecorder()
				f.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost/v1/responses",
					strings.NewReader(`{"model":"talk","input":"Hi","stream":true,"tools":[`+flatF+`]}`)))
				events := servertest.Events(t, w.Body.String())
				if len(events) < 20 {
					t.Errorf("%d events within a minute", len(events))
				}
				var got responseJSON
				for i, e := range events {
					v := servertest.Decode[responseEvent](t, e.Data)
					if v.Number != i {
						t.Errorf("event %d has the number %d", i, v.Number)
					}
					got.apply(t, v, i == len(events)-1)
				}
			})
		})
	}
}

// apply applies an event to what a client has gathered. The last event has to have the same output.
func (r *responseJSON) apply(t *testing.T, e responseEvent, last bool) {
	t.Helper()
	part := func() *outputPart { return &(*r.Output[*e.OutputIndex].Content)[*e.ContentIndex] }
	switch {
	case last:
		if diff := cmp.Diff(r.Output, e.Response.Output); diff != "" || len(r.Output) != 3 {
			t.Errorf("gathered, and as it is: %s", diff)
		}
	case e.Response != nil:
		*r = *e.Response
	case e.Type == "response.output_item.added":
		if *e.OutputIndex != len(r.Output) {
			t.Fatalf("item %d is added to %d", *e.OutputIndex, len(r.Output))
		}
		r.Output = append(r.Output, *e.Item)
	case e.Type == "response.output_item.done":
		r.Output[*e.OutputIndex] = *e.Item
	case e.Type == "response.content_part.added":
		c := r.Output[*e.OutputIndex].Content
		*c = append(*c, *e.Part)
	case e.Type == "response.content_part.done":
		if got := part().Text; got != e.Part.Text {
			t.Errorf("gathered the text %q of %q", got, e.Part.Text)
		}
	case e.Delta != nil && e.ContentIndex != nil:
		part().Text += *e.Delta
	}
}
