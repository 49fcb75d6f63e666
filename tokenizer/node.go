package tokenizer

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
)

type nodeKind uint8

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is a parsed JSON value of a small part of the file.
type node struct {
	kind nodeKind
	text string   // of a string or number; "true" for true, "" for false
	list []*node  // elements of an array, or values of an object
	keys []string // of an object, in file order
}

// value parses any value.
func (r *jsonReader) value() (*node, error) {
	if r.nodes++; r.nodes > limits.TokenizerValues {
		return nil, r.fail("more than %d values", limits.TokenizerValues)
	}
	n := &node{}
	var err error
	switch r.peek() {
	case '{':
		n.kind = objectNode
		err = r.object(func(key []byte) error {
			name := string(key)
			v, err := r.value()
			n.keys = append(n.keys, name)
			n.list = append(n.list, v)
			return err
		})
	case '[':
		n.kind = arrayNode
		err = r.array(func(int) error {
			v, err := r.value()
			n.list = append(n.list, v)
			return err
		})
	case '"':
		n.kind = stringNode
		var s []byte
		s, err = r.str()
		n.text = string(s)
	case 't':
		n.kind, n.text = boolNode, "true"
		err = r.literal("true")
	case 'f':
		n.kind = boolNode
		err = r.literal("false")
	case 'n':
		err = r.literal("null")
	default:
		n.kind = numberNode
		n.text, err = r.number()
	}
	return n, err
}

// get returns the value of a key, or nil if it is absent or null. Of equal keys the last one wins, as in the reference.
func (n *node) get(key string) *node {
	for i := len(n.keys) - 1; i >= 0; i-- {
		if n.keys[i] == key {
			if n.list[i].kind == nullNode {
				return nil
			}
			return n.list[i]
		}
	}
	return nil
}

// component is one part of a tokenizer.json and its name in errors.
type component struct {
	*node
	part string // pre_tokenizer, normalizer, ...
	name string // its type
}

// asComponent checks that n is an object with a type.
func asComponent(n *node, part string) (component, error) {
	c := component{node: n, part: part}
	if n.kind != objectNode {
		return c, c.invalid("is %v, not an object", n.kind)
	}
	t := n.get("type")
	if t == nil || t.kind != stringNode {
		return c, c.invalid("has no type")
	}
	c.name = t.text
	return c, nil
}

func (c component) String() string {
	if c.name == "" {
		return c.part
	}
	return c.part + " " + strconv.Quote(c.name)
}

func (c component) invalid(format string, args ...any) error {
	return failure(ErrInvalid, "tokenizer.json: %v %s", c, fmt.Sprintf(format, args...))
}

func (c component) unsupported(format string, args ...any) error {
	return failure(ErrUnsupported, "tokenizer.json: %v %s", c, fmt.Sprintf(format, args...))
}

// field returns the value of a required key of the given kind.
func (c component) field(key string, kind nodeKind) (*node, error) {
	v := c.get(key)
	if v == nil {
		return nil, c.invalid("has no %s", key)
	}
	if v.kind != kind {
		return nil, c.invalid("has %v as %s, not %v", v.kind, key, kind)
	}
	return v, nil
}

func (c component) str(key string) (string, error) {
	v, err := c.field(key, stringNode)
	if err != nil {
		return "", err
	}
	return v.text, nil
}

// char returns a string of exactly one character.
func (c component) char(key string) (string, error) {
	s, err := c.str(key)
	if err == nil && utf8.RuneCountInString(s) != 1 {
		return "", c.invalid("has %q as %s, not one character", s, key)
	}
	return s, err
}

// count returns an integer from 0 to limit, or absent if there is no such key.
func (c component) count(key string, absent, limit int) (int, error) {
	v := c.get(key)
	if v == nil {
		return absent, nil
	}
	n, err := strconv.Atoi(v.text)
	if v.kind != numberNode || err != nil || n < 0 || n > limit {
		return 0, c.invalid("has a %s that is not an integer from 0 to %d", key, limit)
	}
	return n, nil
}

func (c component) flag(key string) (bool, error) {
	v, err := c.field(key, boolNode)
	if err != nil {
		return false, err
	}
	return v.text != "", nil
}

// parts returns the components of an array.
func (c component) parts(key string) ([]component, error) {
	v, err := c.field(key, arrayNode)
	if err != nil {
		return nil, err
	}
	out := make([]component, len(v.list))
	for i, n := range v.list {
		if out[i], err = asComponent(n, c.part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseID returns the token id in n, or false if n is not a valid id.
func parseID(n *node) (int32, bool) {
	if n == nil || n.kind != numberNode {
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	return int32(v), err == nil && v >= 0 && v <= maxID
}
