package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// specialNames are the named special tokens, in the order in which transformers assigns ids to those that the
// vocabulary lacks (tokenization_utils_base.py, SPECIAL_TOKENS_ATTRIBUTES, of transformers 5.23).
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// configure applies tokenizer_config.json as TokenizersBackend of transformers 5.23 does next to a tokenizer.json: its
// added_tokens_decoder and its special tokens become added tokens unless they exist already. add_bos_token and
// add_eos_token have no effect there.
func (t *Tokenizer) configure(data []byte) error {
	r, err := newJSONReader("tokenizer_config.json", data)
	if err != nil {
		return err
	}
	config, err := r.value()
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return err
	}
	invalid := func(format string, args ...any) error {
		return failure(ErrInvalid, "tokenizer_config.json: "+format, args...)
	}
	if config.kind != objectNode {
		return invalid("%v, not an object", config.kind)
	}
	c := configuration{have: t.added}
	if err := c.read(config); err != nil {
		return invalid("%v", err)
	}
	if err := t.added.add(c.tokens(), t.normalizer); err != nil {
		return invalid("%v", err)
	}
	t.added.splitSpecial = c.splitSpecial
	if v := config.get("clean_up_tokenization_spaces"); v != nil && v.text == "true" && !t.isBPE() {
		t.decoder = append(slices.Clip(t.decoder), cleanUpSteps()...)
	}
	for name, to := range map[string]*int32{"bos_token": &t.bos, "eos_token": &t.eos} {
		if s, ok := c.special[name]; ok {
			if id, ok := t.added.id(s.content); ok {
				*to = id
			}
		}
	}
	return nil
}

// configuration is the tokens of a tokenizer_config.json.
type configuration struct {
	have         *addedVocabulary
	decoder      []addedToken // added_tokens_decoder, in order of ids
	described    map[string]addedToken
	special      map[string]addedToken // by name
	order        []string              // keys of special, in order
	extra        []addedToken
	splitSpecial bool
}

func (c *configuration) read(n *node) error {
	c.described, c.special = map[string]addedToken{}, map[string]addedToken{}
	if v := n.get("split_special_tokens"); v != nil {
		c.splitSpecial = v.text == "true"
	}
	if err := c.readDecoder(n.get("added_tokens_decoder")); err != nil {
		return fmt.Errorf("added_tokens_decoder: %w", err)
	}
	for _, name := range specialNames {
		v := n.get(name)
		if v == nil {
			continue
		}
		t, err := readSpecial(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.name(name, t)
	}
	// Model-specific special tokens, for example image_token.
	for i, name := range n.keys {
		v := n.list[i]
		if strings.HasSuffix(name, "_token") && !slices.Contains(specialNames, name) &&
			(v.kind == stringNode || v.kind == objectNode && v.get("__type") != nil) {
			t, err := readSpecial(v)
			if err != nil {
				return fmt.Errorf("%s: %w", plain(name), err)
			}
			c.name(name, t)
		}
	}
	extra, name := n.get("extra_special_tokens"), "extra_special_tokens"
	if extra == nil || len(extra.list) == 0 {
		extra, name = n.get("additional_special_tokens"), "additional_special_tokens"
	}
	if extra == nil {
		return nil
	}
	if extra.kind != arrayNode && extra.kind != objectNode {
		return fmt.Errorf("%s is %v, not an array or object", name, extra.kind)
	}
	for i, v := range extra.list {
		t, err := readSpecial(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if extra.kind == objectNode {
			c.name(extra.keys[i], t)
		} else {
			c.extra = append(c.extra, t)
		}
	}
	return nil
}

func (c *configuration) name(name string, t addedToken) {
	if d, ok := c.described[t.content]; ok { // the properties in added_tokens_decoder take precedence
		t = d
	}
	if _, ok := c.special[name]; !ok {
		c.order = append(c.order, name)
	}
	c.special[name] = t
}

// readDecoder parses an object from ids to tokens. The ids only determine the order.
func (c *configuration) readDecoder(n *node) error {
	if n == nil {
		return nil
	}
	if n.kind != objectNode {
		return fmt.Errorf("%v, not an object", n.kind)
	}
	type entry struct {
		id    int32
		token addedToken
	}
	var all []entry
	for i, key := range n.keys {
		id, ok := parseID(&node{kind: numberNode, text: key})
		if !ok {
			return fmt.Errorf("key %q is not an id", key)
		}
		if n.list[i].kind != objectNode {
			return fmt.Errorf("id %d: %v, not an object", id, n.list[i].kind)
		}
		t, err := readAddedToken(n.list[i], false)
		if err != nil {
			return fmt.Errorf("id %d: %w", id, err)
		}
		all = append(all, entry{id, t})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(a.id) - int(b.id) })
	for _, e := range all {
		c.decoder = append(c.decoder, e.token)
		c.described[e.token.content] = e.token
	}
	return nil
}

// readSpecial parses a token: a string, or an object with properties.
func readSpecial(n *node) (addedToken, error) {
	switch n.kind {
	case stringNode:
		return addedToken{content: n.text, special: true}, nil
	case objectNode:
		return readAddedToken(n, false)
	}
	return addedToken{}, fmt.Errorf("%v, not a string or object", n.kind)
}

// tokens returns the tokens to add, in order.
func (c *configuration) tokens() []addedToken {
	var out []addedToken
	known := map[string]bool{}
	add := func(t addedToken) {
		known[t.content] = true
		out = append(out, t)
	}
	for _, t := range c.decoder {
		if id, ok := c.have.ids[t.content]; !ok || c.have.tokens[id] != t {
			add(t)
		}
	}
	named := map[string]bool{}
	for _, name := range c.order {
		t := c.special[name]
		named[t.content] = true
		if _, ok := c.have.ids[t.content]; !ok && !known[t.content] {
			add(t)
		}
	}
	for _, t := range c.extra {
		if _, ok := c.have.ids[t.content]; !ok && !known[t.content] {
			add(t)
		}
	}
	for i := range out {
		out[i].special = out[i].special || named[out[i].content]
	}
	return out
}
