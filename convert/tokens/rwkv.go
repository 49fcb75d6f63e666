package tokens

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// rwkvPrefix and rwkvSuffix surround the date in the name of an RWKV vocabulary, such as rwkv_vocab_v20230424.txt.
const rwkvPrefix, rwkvSuffix = "rwkv_vocab_", ".txt"

// rwkvEnd is the token 0 of RWKV's vocabularies, which are without it.
const rwkvEnd = vocab.RWKVEnd

func isRWKV(name string) bool {
	return strings.HasPrefix(name, rwkvPrefix) && strings.HasSuffix(name, rwkvSuffix)
}

// rwkvTokenizer returns the tokenizer.json that does the same as RWKV's program with a vocabulary. The program takes
// the longest token that is a prefix of the text's bytes, again and again. That is a WordPiece over a text that is one
// word, whose bytes are mapped to characters. The vocabulary has a line for each token with its id, its text or bytes
// as a literal of Python, and its number of bytes.
func rwkvTokenizer(list []byte) ([]byte, error) {
	var single [256]bool
	vocab := map[string]int{rwkvEnd: 0}
	for i, line := range strings.Split(strings.TrimSuffix(string(list), "\n"), "\n") {
		id, token, err := rwkvLine(strings.TrimSuffix(line, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(token) == 1 {
			single[token[0]] = true
		}
		mapped := chars.ToByteLevel(string(token))
		if other, twice := vocab[mapped]; twice {
			return nil, fmt.Errorf("line %d: tokens %d and %d are the same", i+1, other, id)
		}
		vocab[mapped] = id
	}
	if b := slices.Index(single[:], false); b >= 0 {
		return nil, fmt.Errorf("no token is the byte %#x alone, so a text may have no tokens", b)
	}
	bytesOfText := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	return marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil,
		"pre_tokenizer": bytesOfText, "decoder": bytesOfText,
		"added_tokens": []any{map[string]any{
			"id": 0, "content": rwkvEnd, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
			"special": true,
		}},
		"model": map[string]any{
			"type": "WordPiece", "unk_token": rwkvEnd, "continuing_subword_prefix": "",
			"max_input_chars_per_word": maxRWKVText, "vocab": vocab,
		},
	})
}

const (
	maxRWKVText  = 1 << 30 // bytes of a text
	maxRWKVToken = 1 << 24 // the largest id
)

// rwkvLine reads a line of a vocabulary.
func rwkvLine(line string) (id int, token []byte, err error) {
	number, rest, ok := strings.Cut(line, " ")
	last := strings.LastIndexByte(rest, ' ')
	if !ok || last < 0 {
		return 0, nil, fmt.Errorf("%.40q is not an id, a literal and a length", line)
	}
	if id, err = strconv.Atoi(number); err != nil || id < 1 || id > maxRWKVToken {
		return 0, nil, fmt.Errorf("id %.20q, want 1 to %d", number, maxRWKVToken)
	}
	if token, err = pythonLiteral(rest[:last]); err != nil {
		return 0, nil, err
	}
	if n, err := strconv.Atoi(rest[last+1:]); err != nil || n != len(token) || n == 0 {
		return 0, nil, fmt.Errorf("token %d has %d bytes, but its length is %.20q", id, len(token), rest[last+1:])
	}
	return id, token, nil
}

// pythonLiteral returns the bytes of a literal as Python's repr writes it: of text, in UTF-8, or of bytes.
func pythonLiteral(s string) ([]byte, error) {
	body, isBytes := strings.CutPrefix(s, "b")
	if len(body) < 2 || body[0] != '\'' && body[0] != '"' || body[len(body)-1] != body[0] {
		return nil, fmt.Errorf("%.40q is not a literal", s)
	}
	var out []byte
	for body = body[1 : len(body)-1]; body != ""; {
		if body[0] != '\\' {
			out, body = append(out, body[0]), body[1:]
			continue
		}
		if len(body) < 2 {
			return nil, fmt.Errorf("%.40q ends in an escape", s)
		}
		kind := body[1]
		body = body[2:]
		if plain, ok := map[byte]byte{'\\': '\\', '\'': '\'', '"': '"', 'n': '\n', 'r': '\r', 't': '\t'}[kind]; ok {
			out = append(out, plain)
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[kind]
		if digits == 0 || len(body) < digits || isBytes && kind != 'x' {
			return nil, fmt.Errorf("%.40q has an unknown escape", s)
		}
		v, err := strconv.ParseUint(body[:digits], 16, 32)
		if err != nil || !isBytes && !utf8.ValidRune(rune(v)) {
			return nil, fmt.Errorf("%.40q has an escape that is no character", s)
		}
		if body = body[digits:]; isBytes {
			out = append(out, byte(v))
		} else {
			out = utf8.AppendRune(out, rune(v))
		}
	}
	return out, nil
}
