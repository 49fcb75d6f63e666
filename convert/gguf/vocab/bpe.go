package vocab

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// bpe makes the tokenizer.json of a vocabulary with merges: of bytes that are mapped to characters (gpt2), or of text
// whose spaces are replaced (gemma4).
func (v *vocabulary) bpe() ([]byte, error) {
	p := pres[v.pre]
	merges, err := v.Texts(prefix + "merges")
	if err != nil {
		return nil, err
	}
	vocab, added, err := v.entries()
	if err != nil {
		return nil, err
	}
	model := map[string]any{
		"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
		"fuse_unk": false, "byte_fallback": false, "ignore_merges": p.ignoreMerges, "vocab": vocab, "merges": merges,
	}
	file := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil, "model": model,
	}
	if v.model == "gemma4" || p.spaces {
		v.spaces(file, model)
	} else {
		byteLevel := func(regex bool) map[string]any {
			return map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
		}
		if p.nfc {
			file["normalizer"] = map[string]any{"type": "NFC"}
		}
		file["pre_tokenizer"] = map[string]any{
			"type": "Sequence", "pretokenizers": append(append([]any{}, p.steps...), byteLevel(p.gpt2)),
		}
		file["decoder"] = byteLevel(true)
	}
	if file["post_processor"], err = v.template(); err != nil {
		return nil, err
	}
	return marshal(file)
}

// marshal does not escape < and >, which every special token has.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return b.Bytes(), err
}

// spaces sets the parts of Gemma's tokenizer: ▁ for spaces, and bytes for what is not in the vocabulary.
func (v *vocabulary) spaces(file, model map[string]any) {
	model["byte_fallback"], model["fuse_unk"] = true, true
	for i, text := range v.tokens {
		if v.kind(i) == typeUnknown || text == "<unk>" {
			model["unk_token"] = text
			break
		}
	}
	replace := func(from, to string) map[string]any {
		return map[string]any{"type": "Replace", "pattern": map[string]any{"String": from}, "content": to}
	}
	file["normalizer"] = replace(" ", "▁")
	file["pre_tokenizer"] = map[string]any{
		"type": "Split", "pattern": map[string]any{"String": " "}, "behavior": "MergedWithPrevious", "invert": false,
	}
	file["decoder"] = map[string]any{"type": "Sequence", "decoders": []any{
		replace("▁", " "), map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"},
	}}
}

// object is a JSON object whose keys keep their order.
type object struct {
	keys   []string
	values []int
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := marshal(key)
		if err != nil {
			return nil, err
		}
		b.Write(bytes.TrimSpace(text))
		fmt.Fprintf(&b, ":%d", o.values[i])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// entries returns the vocabulary, and the tokens that are matched in the text before anything else.
func (v *vocabulary) entries() (object, []any, error) {
	var vocab object
	added := []any{}
	seen := make(map[string]int, len(v.tokens))
	for i, text := range v.tokens {
		if other, twice := seen[text]; twice {
			return vocab, nil, fmt.Errorf("%w: tokens %d and %d are the same, %.40q", ErrVocabulary, other, i, text)
		}
		seen[text] = i
		vocab.keys, vocab.values = append(vocab.keys, text), append(vocab.values, i)
		kind := v.kind(i)
		if kind != typeControl && kind != typeUserDefined && kind != typeUnknown || text == "" {
			continue
		}
		added = append(added, map[string]any{
			"id": i, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
			"special": kind != typeUserDefined,
		})
	}
	return vocab, added, nil
}

// template returns the post-processor, which adds BOS and EOS; nil if neither is added.
func (v *vocabulary) template() (any, error) {
	addBos, addEos, err := v.adds()
	if err != nil {
		return nil, err
	}
	text := map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}
	single, special := []any{text}, map[string]any{}
	for _, t := range []struct {
		name  string
		add   bool
		first bool
	}{{"bos", addBos, true}, {"eos", addEos, false}} {
		id, err := v.special(t.name)
		if err != nil {
			return nil, err
		}
		if id < 0 || !t.add {
			continue
		}
		token := v.tokens[id]
		special[token] = map[string]any{"id": token, "ids": []int{id}, "tokens": []string{token}}
		piece := map[string]any{"SpecialToken": map[string]any{"id": token, "type_id": 0}}
		if t.first {
			single = append([]any{piece}, single...)
		} else {
			single = append(single, piece)
		}
	}
	if len(special) == 0 {
		return nil, nil
	}
	pair := append(append([]any{}, single...), map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}})
	return map[string]any{
		"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special,
	}, nil
}
