package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/ingotml/ingot/chat/parse/calls"
	"strings"
	"testing"
	"unicode/utf8"
)

// weather is a tool with one parameter of each type.
var weather = calls.Tool{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{
	"city":{"type":"string"},"days":{"type":"integer"},"high":{"type":"number"},"wet":{"type":"boolean"},
	"list":{"type":"array"},"more":{"type":"object"},"any":{"anyOf":[{"type":"string"},{"type":"integer"}]},
	"two":{"type":["number","null"]}},"required":["city"]}`)}

var offered = Options{Tools: []calls.Tool{weather, {Name: "f"}, {Name: "g"}}}

func mustNew(t testing.TB, name string, o Options) Parser {
	t.Helper()
	p, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// feed parses pieces of text and merges the events.
func feed(t testing.TB, p Parser, pieces ...string) ([]Event, error) {
	t.Helper()
	var out []Event
	for _, s := range pieces {
		out = append(out, p.Feed(s)...)
	}
	rest, err := p.Close()
	out = append(out, rest...)
	if utf8.ValidString(strings.Join(pieces, "")) {
		wholeRunes(t, out)
	}
	for _, e := range out {
		if e.Kind != Call && e.Text == "" {
			t.Error("text event without text")
		}
		if e.Kind == Damaged != (e.Err != nil) {
			t.Errorf("%v event with error %v", e.Kind, e.Err)
		}
	}
	return Merge(out), err
}

// describe formats events: C"content", T"thinking", D"damaged", I"incomplete", and name{arguments}#id for a call.
func describe(events []Event) string {
	var out []string
	for _, e := range events {
		switch e.Kind {
		case Content:
			out = append(out, fmt.Sprintf("C%q", e.Text))
		case Thinking:
			out = append(out, fmt.Sprintf("T%q", e.Text))
		case Call:
			s := e.Call.Name + string(e.Call.Arguments)
			if e.Call.ID != "" {
				s += "#" + e.Call.ID
			}
			out = append(out, s)
		case Damaged:
			kind := "D"
			if errors.Is(e.Err, ErrIncomplete) {
				kind = "I"
			}
			out = append(out, fmt.Sprintf("%s%q", kind, e.Text))
		}
	}
	return strings.Join(out, " ")
}

// check parses a text in one piece, split at every byte, and byte by byte.
func check(t *testing.T, name string, o Options, text, want string) {
	t.Helper()
	whole, err := feed(t, mustNew(t, name, o), text)
	if got := describe(whole); got != want {
		t.Errorf("%s %q:\n got %s\nwant %s", name, text, got, want)
		return
	}
	damaged := strings.HasPrefix(want, "D") || strings.HasPrefix(want, "I") || strings.Contains(want, " D\"") ||
		strings.Contains(want, " I\"")
	if damaged != (err != nil) || err != nil && !errors.Is(err, ErrCall) && !errors.Is(err, ErrIncomplete) {
		t.Errorf("%s %q: error %v", name, text, err)
	}
	same := func(how string, pieces ...string) {
		t.Helper()
		got, err2 := feed(t, mustNew(t, name, o), pieces...)
		if describe(got) != want || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Errorf("%s %q %s:\n got %s, %v\nwant %s, %v", name, text, how, describe(got), err2, want, err)
		}
	}
	for i := range len(text) + 1 {
		same(fmt.Sprintf("cut at %d", i), text[:i], text[i:])
	}
	same("byte by byte", bytesOf(text)...)
}

func bytesOf(text string) []string {
	out := make([]string, len(text))
	for i := range out {
		out[i] = text[i : i+1]
	}
	return out
}

// wholeRunes checks that no text event of valid text ends inside a character.
func wholeRunes(t testing.TB, events []Event) {
	t.Helper()
	for _, e := range events {
		if !utf8.ValidString(e.Text) {
			t.Errorf("%q is split inside a character", e.Text)
		}
	}
}
