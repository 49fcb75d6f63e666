package batch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
)

// A text that follows a prompt keeps the space of its first word, which SentencePiece's decoder removes from the start
// of a text, and completes the prompt's last character.
func TestFollow(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "tokenizers", "llama2")
	model, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode(t.Context(), "the cat é", false)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(ids); cut++ {
		prompt := newTextStream(tok, nil, false)
		whole := ""
		for _, id := range ids[:cut] {
			text, _ := prompt.next(id)
			whole += text
		}
		rest := newTextStream(tok, nil, false)
		rest.follow(ids[:cut])
		for _, id := range ids[cut:] {
			text, _ := rest.next(id)
			whole += text
		}
		if whole += rest.flush(); whole != "the cat é" {
			t.Errorf("cut after %d tokens: %q", cut, whole)
		}
	}
	alone := newTextStream(tok, nil, false)
	alone.follow([]int32{1})
	if text, _ := alone.next(ids[0]); text == "" || text[0] == ' ' {
		t.Errorf("after a special token: %q", text)
	}
}

// The stream records which stop text it found: the earliest in the text.
func TestFirstStop(t *testing.T) {
	s := newTextStream(nil, []string{"two", "one"}, false)
	if _, stopped := s.add("a on"); stopped || s.matched != "" {
		t.Errorf("stopped %v at %q", stopped, s.matched)
	}
	if _, stopped := s.add("e two"); !stopped || s.matched != "one" {
		t.Errorf("stopped %v at %q", stopped, s.matched)
	}
}

// feed passes pieces of text to a stream and returns what it emits for each, and at the end.
func feed(stops []string, pieces ...string) (out []string, stopped bool) {
	s := newTextStream(nil, stops, false)
	for _, p := range pieces {
		text, stopped := s.add(p)
		out = append(out, text)
		if stopped {
			return out, true
		}
	}
	return append(out, s.held), false
}

func TestStops(t *testing.T) {
	for _, test := range []struct {
		name    string
		stops   []string
		pieces  []string
		want    []string
		stopped bool
	}{
		{"none", nil, []string{"a", "b"}, []string{"a", "b", ""}, false},
		{"empty stop is no stop", []string{""}, []string{"a"}, []string{"a", ""}, false},
		{"inside one piece", []string{"END"}, []string{"one END two"}, []string{"one "}, true},
		{"across pieces", []string{"END"}, []string{"one E", "N", "D two"}, []string{"one ", "", ""}, true},
		{"a start that was none", []string{"END"}, []string{"one E", "N", "X"}, []string{"one ", "", "ENX", ""}, false},
		{"a start at the end of the text", []string{"END"}, []string{"one EN"}, []string{"one ", "EN"}, false},
		{"the earliest of two", []string{"two", "one"}, []string{"a one two"}, []string{"a "}, true},
		{"a start within a start", []string{"aab"}, []string{"aa", "ab"}, []string{"", "a"}, true},
		{"longest possible start is held", []string{"xy", "abxy"}, []string{"abx", "z"}, []string{"", "abxz", ""}, false},
	} {
		got, stopped := feed(test.stops, test.pieces...)
		if len(got) != len(test.want) || stopped != test.stopped {
			t.Errorf("%s: %q, stopped %v; want %q, %v", test.name, got, stopped, test.want, test.stopped)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%s: %q, want %q", test.name, got, test.want)
				break
			}
		}
	}
}
