package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer/decode"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// specialNames are the named special tokens, in the order in which transformers assigns ids to those that the
// vocabulary lacks (tokenization_utils_base.py, SPECIAL_TOKENS_ATTRIBUTES, of transformers 5.23).
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// configure applies tokenizer_config.json as TokenizersBackend of transformers 5.23 does next to a tokenizer.json: its
// added_tokens_decoder and its special tokens become added tokens unless they exist already. add_bos_token and
// add_eos_token have no effect there.
func (t *Tokenizer) configure(data []byte) error {
	r, err := jsonfile.NewReader("tokenizer_config.json", pyjson.Plain(data))
	if err != nil {
		return err
	}
	config, err := r.Value()
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return err
	}
	invalid := func(format string, args ...any) error {
		return fault.Errorf(ErrInvalid, "tokenizer_config.json: "+format, args...)
	}
	if config.Kind != jsonfile.ObjectNode {
		return invalid("%v, not an object", config.Kind)
	}
	c := configuration{have: t.added}
	if err := c.read(config); err != nil {
		return invalid("%v", err)
	}
	if err := t.added.add(c.tokens(), t.normalizer); err != nil {
		return invalid("%v", err)
	}
	t.added.splitSpecial = c.splitSpecial
	if v := config.Get("clean_up_tokenization_spaces"); v != nil && v.Text == "true" && !encode.IsBPE(t.model) {
		t.decoder = append(slices.Clip(t.decoder), decode.CleanUp()...)
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
	ids          []int32      // of decoder
	described    map[string]addedToken
	special      map[string]addedToken // by name
	order        []string              // keys of special, in order
	extra        []addedToken
	splitSpecial bool
}

func (c *configuration) read(n *jsonfile.Node) error {
	c.described, c.special = map[string]addedToken{}, map[string]addedToken{}
	if v := n.Get("split_special_tokens"); v != nil {
		c.splitSpecial = v.Text == "true"
	}
	if err := c.readDecoder(n.Get("added_tokens_decoder")); err != nil {
		return fmt.Errorf("added_tokens_decoder: %w", err)
	}
	for _, name := range specialNames {
		v := n.Get(name)
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
	for i, name := range n.Keys {
		v := n.List[i]
		if strings.HasSuffix(name, "_token") && !slices.Contains(specialNames, name) &&
			(v.Kind == jsonfile.StringNode || v.Kind == jsonfile.ObjectNode && v.Get("__type") != nil) {
			t, err := readSpecial(v)
			if err != nil {
				return fmt.Errorf("%s: %w", fault.Plain(name), err)
			}
			c.name(name, t)
		}
	}
	extra, name := n.Get("extra_special_tokens"), "extra_special_tokens"
	if extra == nil || len(extra.List) == 0 {
		extra, name = n.Get("additional_special_tokens"), "additional_special_tokens"
	}
	if extra == nil {
		return nil
	}
	if extra.Kind != jsonfile.ArrayNode && extra.Kind != jsonfile.ObjectNode {
		return fmt.Errorf("%s is %v, not an array or object", name, extra.Kind)
	}
	for i, v := range extra.List {
		t, err := readSpecial(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if extra.Kind == jsonfile.ObjectNode {
			c.name(extra.Keys[i], t)
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
func (c *configuration) readDecoder(n *jsonfile.Node) error {
	if n == nil {
		return nil
	}
	if n.Kind != jsonfile.ObjectNode {
		return fmt.Errorf("%v, not an object", n.Kind)
	}
	type entry struct {
		id    int32
		token addedToken
	}
	var all []entry
	for i, key := range n.Keys {
		id, ok := jsonfile.ParseID(&jsonfile.Node{Kind: jsonfile.NumberNode, Text: key})
		if !ok {
			return fmt.Errorf("key %q is not an id", key)
		}
		if n.List[i].Kind != jsonfile.ObjectNode {
			return fmt.Errorf("id %d: %v, not an object", id, n.List[i].Kind)
		}
		t, err := readAddedToken(n.List[i], false)
		if err != nil {
			return fmt.Errorf("id %d: %w", id, err)
		}
		all = append(all, entry{id, t})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return int(a.id) - int(b.id) })
	for _, e := range all {
		c.decoder, c.ids = append(c.decoder, e.token), append(c.ids, e.id)
		c.described[e.token.content] = e.token
	}
	return nil
}

// readSpecial parses a token: a string, or an object with properties.
func readSpecial(n *jsonfile.Node) (addedToken, error) {
	switch n.Kind {
	case jsonfile.StringNode:
		return addedToken{content: n.Text, special: true}, nil
	case jsonfile.ObjectNode:
		return readAddedToken(n, false)
	}
	return addedToken{}, fmt.Errorf("%v, not a string or object", n.Kind)
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
