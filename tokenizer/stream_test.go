package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// For random ids, Next returns whole characters and never retracts text, and the results concatenate to Decode's.
func TestStreamEqualsDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, name := range tokenizertest.Trained {
		tok := loadFixture(t, name)
		s := map[bool]*Stream{false: tok.Stream(false), true: tok.Stream(true)}
		for range 2000 {
			ids := make([]int32, rng.IntN(30))
			for i := range ids {
				ids[i] = int32(rng.IntN(tok.Size() + 4))
				if rng.IntN(2) == 0 {
					ids[i] = int32(rng.IntN(min(280, tok.Size()))) // single bytes
				}
			}
			for skip, stream := range s {
				want, err := tok.Decode(ids, skip)
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				for _, id := range ids {
					next := stream.Next(id)
					if !utf8.ValidString(next) {
						t.Fatalf("%s: Next(%d) is %q", name, id, next)
					}
					got += next
					if !strings.HasPrefix(want, got) {
						t.Fatalf("%s, %v: %q is no prefix of %q", name, ids, got, want)
					}
				}
				if got += stream.Flush(); got != want { // it also resets the stream
					t.Fatalf("%s, %v: got %q, want %q", name, ids, got, want)
				}
			}
		}
	}
}

// A character is returned as soon as it is complete, U+FFFD as soon as the character cannot become valid.
func TestStreamIsPrompt(t *testing.T) {
	tok := loadFixture(t, "qwen")
	s := tok.Stream(false)
	for _, step := range []struct {
		b    byte
		want string
	}{{'a', "a"}, {0xf0, ""}, {0x9f, ""}, {0x98, ""}, {0x80, "😀"}, {0xe2, ""}, {0x82, ""}, {'b', "\ufffdb"},
		{0xff, "\ufffd"}, {0xc3, ""}} {
		id, ok := tok.ID(string(chars.ByteToRune[step.b]))
		if !ok {
			t.Fatalf("no token for byte %#x", step.b)
		}
		if got := s.Next(id); got != step.want {
			t.Errorf("after byte %#x: %q, want %q", step.b, got, step.want)
		}
	}
	if got := s.Flush(); got != "\ufffd" {
		t.Errorf("Flush: %q", got)
	}
	if got := s.Flush(); got != "" {
		t.Errorf("second Flush: %q", got)
	}
}
