package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

var errStop = errors.New("stop")

// add stores a complete response with an input item and an output item.
func add(t *testing.T, s *Store, owner, id, previous string) {
	t.Helper()
	r := &Response{Owner: owner, ID: id, Previous: previous, Input: []Item{{"in " + id, json.RawMessage(`"` + id + `?"`)}}}
	if !s.Begin(r, json.RawMessage(`{}`), nil) {
		t.Fatalf("%s is not stored", id)
	}
	s.Finish(r, json.RawMessage(`{"id":"`+id+`"}`), []Item{{"out " + id, json.RawMessage(`"` + id + `!"`)}})
}

// texts are the items of a conversation.
func texts(list []Item) string {
	var out []string
	for _, it := range list {
		out = append(out, strings.Trim(string(it.Raw), `"`))
	}
	return strings.Join(out, " ")
}

func TestConversation(t *testing.T) {
	s := New(10, 1<<20)
	add(t, s, "me", "a", "")
	add(t, s, "me", "b", "a")
	add(t, s, "me", "c", "b")
	add(t, s, "me", "d", "a") // another branch
	for _, c := range []struct {
		id     string
		output bool
		want   string
	}{{"a", true, "a? a!"}, {"c", true, "a? a! b? b! c? c!"}, {"c", false, "a? a! b? b! c?"}, {"d", true, "a? a! d? d!"}} {
		list, err := s.Conversation("me", c.id, c.output)
		if got := texts(list); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.id, got, err, c.want)
		}
	}
	if raw, ok := s.Item("me", "out b"); !ok || string(raw) != `"b!"` {
		t.Errorf("an item: %s, %v", raw, ok)
	}
	if err := s.Delete("me", "b", errStop); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c", "nothing"} {
		if _, err := s.Conversation("me", id, true); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, ok := s.Item("me", "out b"); ok {
		t.Error("an item of a deleted response")
	}
}

func TestOwners(t *testing.T) {
	s := New(10, 1<<20)
	add(t, s, "me", "a", "")
	add(t, s, "you", "b", "a")
	_, get := s.Get("you", "a")
	_, conversation := s.Conversation("you", "a", true)
	_, continued := s.Conversation("you", "b", true)
	_, _, cancel := s.Cancel(t.Context(), "you", "a", errStop)
	for name, err := range map[string]error{"get": get, "conversation": conversation, "continued": continued,
		"cancel": cancel, "delete": s.Delete("you", "a", errStop)} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s of another owner's response: %v", name, err)
		}
	}
	if _, ok := s.Item("you", "in a"); ok {
		t.Error("an item of another owner's response")
	}
	if body, err := s.Get("me", "a"); string(body) != `{"id":"a"}` || err != nil {
		t.Errorf("%s, %v", body, err)
	}
}

func TestCancel(t *testing.T) {
	s := New(10, 1<<20)
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &Response{ID: "a"}
	if !s.Begin(r, json.RawMessage(`1`), cancel) {
		t.Fatal("not stored")
	}
	if _, err := s.Conversation("", "a", true); err == nil || !strings.Contains(err.Error(), "not complete") {
		t.Errorf("a response in progress is continued: %v", err)
	}
	go func() {
		<-ctx.Done()
		s.Finish(r, json.RawMessage(`2`), nil)
	}()
	body, running, err := s.Cancel(t.Context(), "", "a", errStop)
	if string(body) != "2" || !running || err != nil || context.Cause(ctx) != errStop {
		t.Errorf("%s, %v, %v, %v", body, running, err, context.Cause(ctx))
	}
	if body, running, err = s.Cancel(t.Context(), "", "a", errStop); string(body) != "2" || running || err != nil {
		t.Errorf("again: %s, %v, %v", body, running, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	stuck := &Response{ID: "b"}
	s.Begin(stuck, json.RawMessage(`1`), func(error) {})
	if _, _, err := s.Cancel(gone, "", "b", errStop); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left waits: %v", err)
	}
	if err := s.Delete("", "b", errStop); err != nil {
		t.Fatal(err)
	}
	s.Finish(stuck, json.RawMessage(`2`), nil)
	if _, err := s.Get("", "b"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a deleted response is back: %v", err)
	}
}

func TestBounds(t *testing.T) {
	s := New(limits.StoredResponses, limits.StoredSize)
	for i := range limits.StoredResponses + 2 {
		previous := ""
		if i == 1 || i == limits.StoredResponses {
			previous = "0" // which is then used again
		}
		add(t, s, "", fmt.Sprint(i), previous)
	}
	var left []string
	for _, id := range []string{"0", "1", "2", "3", "1024", "1025"} {
		if _, err := s.Get("", id); err == nil {
			left = append(left, id)
		}
	}
	if !slices.Equal(left, []string{"0", "3", "1024", "1025"}) || len(s.byID) != limits.StoredResponses {
		t.Errorf("%q of %d are left", left, len(s.byID))
	}

	const half = limits.StoredSize / 2
	big := func(id string, size int) *Response {
		return &Response{ID: id, Input: []Item{{"", make(json.RawMessage, size)}}}
	}
	if s.Begin(big("huge", limits.StoredSize), nil, nil) {
		t.Error("a response that is too large is stored")
	}
	if _, err := s.Get("", "0"); err != nil {
		t.Errorf("it has evicted another one: %v", err)
	}
	first, second := big("first", half), big("second", half)
	s.Begin(first, nil, nil)
	s.Finish(first, nil, nil)
	s.Begin(second, nil, nil)
	if _, err := s.Get("", "first"); !errors.Is(err, ErrUnknown) || s.size > limits.StoredSize {
		t.Errorf("%d bytes are stored: %v", s.size, err)
	}
	s.Finish(second, make(json.RawMessage, limits.StoredSize), nil)
	if _, err := s.Get("", "second"); !errors.Is(err, ErrUnknown) || s.size != 0 || len(s.byID) != 0 {
		t.Errorf("%d bytes of %d responses are left: %v", s.size, len(s.byID), err)
	}
}
