package tokens

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
)

// rwkvVocabulary has all bytes, and some longer tokens of text and of bytes, as Python writes them.
func rwkvVocabulary() (list string, tokens [][]byte) {
	var b strings.Builder
	tokens = append(tokens, nil) // 0 is the end of a text
	add := func(literal string, token []byte) {
		fmt.Fprintf(&b, "%d %s %d\n", len(tokens), literal, len(token))
		tokens = append(tokens, token)
	}
	for c := range 256 {
		switch {
		case c == '\'':
			add(`"'"`, []byte{byte(c)})
		case c == '\\':
			add(`'\\'`, []byte{byte(c)})
		case c >= ' ' && c < 0x7f:
			add("'"+string(rune(c))+"'", []byte{byte(c)})
		default:
			add(fmt.Sprintf(`b'\x%02x'`, c), []byte{byte(c)})
		}
	}
	for literal, token := range map[string]string{
		`'ab'`: "ab", `'abc d'`: "abc d", `' c'`: " c", `"it's"`: "it's", `'\n\n'`: "\n\n", `'\t\''`: "\t'", `'ü'`: "ü",
		`'\u3000'`: "\u3000", `'\x85'`: "\u0085", `'\U0001f600'`: "\U0001f600", `b'\xe4\xb8'`: "\xe4\xb8",
		`b'c\xff'`: "c\xff",
	} {
		add(literal, []byte(token))
	}
	return b.String(), tokens
}

// The tokenizer.json of an RWKV vocabulary takes the longest token again and again, and gives the text back.
func TestRWKVTokenizer(t *testing.T) {
	list, tokens := rwkvVocabulary()
	data, err := rwkvTokenizer([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(data, []byte(`{"eos_token":"`+rwkvEnd+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if end, ok := tok.EOS(); !ok || end != 0 {
		t.Errorf("EOS is %d, want 0", end)
	}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "c", " ", "d", "it", "'s", "\n", "\t", "'", "ü", "\u3000", "\u0085", "😀", "中",
		"x", "abc d", "'"}
	for range 200 {
		var text strings.Builder
		for range r.IntN(30) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		var want []int32
		for rest := []byte(text.String()); len(rest) > 0; {
			best := 0
			for id, token := range tokens {
				if len(token) > len(tokens[best]) && bytes.HasPrefix(rest, token) {
					best = id
				}
			}
			want, rest = append(want, int32(best)), rest[len(tokens[best]):]
		}
		got, err := tok.Encode(t.Context(), text.String(), true)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q is %v (%v), want %v", text.String(), got, err, want)
		}
		if back, err := tok.Decode(got, false); err != nil || back != text.String() {
			t.Errorf("%q comes back as %q (%v)", text.String(), back, err)
		}
	}
	ids, err := tok.Encode(t.Context(), "ab"+rwkvEnd+"c", true)
	if err != nil || len(ids) != 3 || ids[1] != 0 {
		t.Errorf("the end of a text in a text is %v (%v)", ids, err)
	}
}

// Damaged vocabularies are errors that name the line.
func TestBadRWKVVocabulary(t *testing.T) {
	good, tokens := rwkvVocabulary()
	next := len(tokens)
	for line, want := range map[string]string{
		"x 'a' 1":                            "id",
		"0 'zz' 2":                           "id",
		"99999999 'zz' 2":                    "id",
		"one":                                "not an id",
		fmt.Sprintf("%d 'zz 2", next):        "not a literal",
		fmt.Sprintf("%d zz 2", next):         "not a literal",
		fmt.Sprintf(`%d 'z\q' 2`, next):      "unknown escape",
		fmt.Sprintf(`%d b'z\u1234' 2`, next): "unknown escape",
		fmt.Sprintf(`%d 'z\ud800' 4`, next):  "no character",
		fmt.Sprintf(`%d 'z\xg0' 2`, next):    "no character",
		fmt.Sprintf("%d 'zz' 3", next):       "length",
		fmt.Sprintf("%d '' 0", next):         "length",
		fmt.Sprintf("%d 'ab' 2", next):       "the same",
	} {
		_, err := rwkvTokenizer([]byte(good + line + "\n"))
		where := fmt.Sprintf("line %d", next)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	_, without, _ := strings.Cut(good, "\n")
	if _, err := rwkvTokenizer([]byte(without)); err == nil || !strings.Contains(err.Error(), "0x0") {
		t.Errorf("a byte without a token: %v", err)
	}
}
