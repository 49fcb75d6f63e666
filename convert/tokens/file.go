package tokens

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// words is how a text is split into words before their bytes are merged.
type words struct {
	nfc     bool
	steps   []any
	gpt2    bool // GPT-2's own pattern splits last
	prefix  bool // a space is put before the text
	special []piece
}

// piece is a token with its id.
type piece struct {
	text string
	id   int
}

// splits returns a step that makes each match of a pattern a word of its own.
func splits(pattern string) []any {
	return []any{map[string]any{
		"type": "Split", "pattern": map[string]any{"Regex": pattern}, "behavior": "Isolated", "invert": false,
	}}
}

// file returns a tokenizer.json for a byte-level BPE; model and post are its parts.
func (w words) file(model, post any) ([]byte, error) {
	byteLevel := func(prefix, regex bool) map[string]any {
		return map[string]any{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": regex}
	}
	added := []any{}
	for _, t := range w.special {
		// A normalized text may have other characters where it has a special token.
		added = append(added, map[string]any{
			"id": t.id, "content": t.text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": w.nfc,
			"special": true,
		})
	}
	var normalizer any
	if w.nfc {
		normalizer = map[string]any{"type": "NFC"}
	}
	return marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": normalizer,
		"pre_tokenizer": map[string]any{
			"type": "Sequence", "pretokenizers": append(slices.Clip(w.steps), byteLevel(w.prefix, w.gpt2)),
		},
		"post_processor": post, "decoder": byteLevel(true, true), "model": model,
	})
}

// template returns a post-processor that puts tokens before and after a text; nil if there are none.
func template(before, after []piece) any {
	if len(before)+len(after) == 0 {
		return nil
	}
	special := map[string]any{}
	token := func(t piece) any {
		special[t.text] = map[string]any{"id": t.text, "ids": []int{t.id}, "tokens": []string{t.text}}
		return map[string]any{"SpecialToken": map[string]any{"id": t.text, "type_id": 0}}
	}
	var single []any
	for _, t := range before {
		single = append(single, token(t))
	}
	single = append(single, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}})
	for _, t := range after {
		single = append(single, token(t))
	}
	pair := append(slices.Clip(single), map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}})
	return map[string]any{
		"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special,
	}
}

// ranked is a vocabulary of tiktoken: each token has a rank, and the pair of tokens with the lowest rank is merged
// first, the leftmost of equal ones. A word that is a token is that token.
type ranked struct {
	name   string // of the file, for errors
	tokens [][]byte
	ranks  map[string]int
}

const maxRank = 1 << 24

// add adds a token.
func (r *ranked) add(where string, token []byte, rank int) error {
	if other, twice := r.ranks[string(token)]; twice {
		return damaged(r.name, "%s: the tokens %d and %d are the same", where, other, rank)
	}
	if rank < 0 || rank > maxRank {
		return damaged(r.name, "%s: the rank is %d, want 0 to %d", where, rank, maxRank)
	}
	for len(r.tokens) <= rank {
		r.tokens = append(r.tokens, nil)
	}
	if r.tokens[rank] != nil {
		return damaged(r.name, "%s: two tokens have the rank %d", where, rank)
	}
	if r.ranks == nil {
		r.ranks = map[string]int{}
	}
	r.tokens[rank] = token
	r.ranks[string(token)] = rank
	return nil
}

// model returns the model of a tokenizer.json. The id of a token is its rank and first; special are more tokens. Every
// byte must be a token, so that every text has tokens.
func (r *ranked) model(first int, special []piece) (any, error) {
	for b := range 256 {
		if _, ok := r.ranks[string([]byte{byte(b)})]; !ok {
			return nil, damaged(r.name, "no token is the byte 0x%02x alone, want one for each byte", b)
		}
	}
	ids := make(map[string]int, len(r.ranks)+len(special))
	var vocab bytes.Buffer
	put := func(text string, id int) error {
		if other, twice := ids[text]; twice {
			return fmt.Errorf("%w: %s: the special token %q is the ordinary token %d, too, which is not supported; %s",
				ErrUnknown, r.name, clip.Text(text, 40), other, save)
		}
		ids[text] = id
		key, err := marshal(text)
		if err != nil {
			return err
		}
		vocab.WriteByte(separator(vocab.Len()))
		vocab.Write(bytes.TrimSpace(key))
		vocab.WriteByte(':')
		vocab.WriteString(strconv.Itoa(id))
		return nil
	}
	var merges []string
	for rank, token := range r.tokens {
		if token == nil {
			continue
		}
		if err := put(chars.ToByteLevel(string(token)), first+rank); err != nil {
			return nil, err
		}
		merges = r.merges(merges, token)
	}
	for _, t := range special {
		if err := put(t.text, t.id); err != nil {
			return nil, err
		}
	}
	vocab.WriteByte('}')
	return map[string]any{
		"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
		"fuse_unk": false, "byte_fallback": false, "ignore_merges": true, "rank_by_id": true,
		"vocab": json.RawMessage(vocab.Bytes()), "merges": merges,
	}, nil
}

func separator(n int) byte {
	if n == 0 {
		return '{'
	}
	return ','
}

// merges appends the merges that make a token: of all pairs of tokens, those with the lower ranks first, as
// transformers orders them.
func (r *ranked) merges(merges []string, token []byte) []string {
	var pairs [][2]int
	for at := 1; at < len(token); at++ {
		left, ok := r.ranks[string(token[:at])]
		if !ok {
			continue
		}
		if right, ok := r.ranks[string(token[at:])]; ok {
			pairs = append(pairs, [2]int{left, right})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range pairs {
		merges = append(merges, chars.ToByteLevel(string(r.tokens[p[0]]))+" "+chars.ToByteLevel(string(r.tokens[p[1]])))
	}
	return merges
}

// save is the remedy for a tokenizer that cannot be read.
const save = "save the tokenizer with transformers (save_pretrained of its AutoTokenizer), which writes tokenizer.json"
