package jsonfile

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/fault"
)

type nodeKind uint8

const (
	NullNode nodeKind = iota
	BoolNode
	NumberNode
	StringNode
	ArrayNode
	ObjectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Node is a parsed JSON value of a small part of the file.
type Node struct {
	Kind nodeKind
	Text string   // of a string or number; "true" for true, "" for false
	List []*Node  // elements of an array, or values of an object
	Keys []string // of an object, in file order
}

// Value parses any value.
func (r *Reader) Value() (*Node, error) {
	if r.Nodes++; r.Nodes > limits.TokenizerValues {
		return nil, r.Fail("more than %d values", limits.TokenizerValues)
	}
	n := &Node{}
	var err error
	switch r.Peek() {
	case '{':
		n.Kind = ObjectNode
		err = r.Object(func(key []byte) error {
			name := string(key)
			v, err := r.Value()
			n.Keys = append(n.Keys, name)
			n.List = append(n.List, v)
			return err
		})
	case '[':
		n.Kind = ArrayNode
		err = r.Array(func(int) error {
			v, err := r.Value()
			n.List = append(n.List, v)
			return err
		})
	case '"':
		n.Kind = StringNode
		var s []byte
		s, err = r.Str()
		n.Text = string(s)
	case 't':
		n.Kind, n.Text = BoolNode, "true"
		err = r.Literal("true")
	case 'f':
		n.Kind = BoolNode
		err = r.Literal("false")
	case 'n':
		err = r.Literal("null")
	default:
		n.Kind = NumberNode
		var text []byte
		text, err = r.Number()
		n.Text = string(text)
	}
	return n, err
}

// Get returns the value of a key, or nil if it is absent or null. Of equal keys the last one wins, as in the reference.
func (n *Node) Get(key string) *Node {
	for i := len(n.Keys) - 1; i >= 0; i-- {
		if n.Keys[i] == key {
			if n.List[i].Kind == NullNode {
				return nil
			}
			return n.List[i]
		}
	}
	return nil
}

// Component is one part of a tokenizer.json and its name in errors.
type Component struct {
	*Node
	Part string // pre_tokenizer, normalizer, ...
	Name string // its type
}

// AsComponent checks that n is an object with a type.
func AsComponent(n *Node, part string) (Component, error) {
	c := Component{Node: n, Part: part}
	if n.Kind != ObjectNode {
		return c, c.Invalid("is %v, not an object", n.Kind)
	}
	t := n.Get("type")
	if t == nil || t.Kind != StringNode {
		return c, c.Invalid("has no type")
	}
	c.Name = t.Text
	return c, nil
}

func (c Component) String() string {
	if c.Name == "" {
		return c.Part
	}
	return c.Part + " " + strconv.Quote(c.Name)
}

func (c Component) Invalid(format string, args ...any) error {
	return fault.Errorf(fault.ErrInvalid, "tokenizer.json: %v %s", c, fmt.Sprintf(format, args...))
}

func (c Component) Unsupported(format string, args ...any) error {
	return fault.Errorf(fault.ErrUnsupported, "tokenizer.json: %v %s", c, fmt.Sprintf(format, args...))
}

// Field returns the value of a required key of the given kind.
func (c Component) Field(key string, kind nodeKind) (*Node, error) {
	v := c.Get(key)
	if v == nil {
		return nil, c.Invalid("has no %s", key)
	}
	if v.Kind != kind {
		return nil, c.Invalid("has %v as %s, not %v", v.Kind, key, kind)
	}
	return v, nil
}

func (c Component) Str(key string) (string, error) {
	v, err := c.Field(key, StringNode)
	if err != nil {
		return "", err
	}
	if len(v.Text) > limits.TokenBytes {
		return "", c.Unsupported("has a %s of %d bytes, which is not supported: at most %d", key, len(v.Text),
			limits.TokenBytes)
	}
	return v.Text, nil
}

// Char returns a string of exactly one character.
func (c Component) Char(key string) (string, error) {
	s, err := c.Str(key)
	if err == nil && utf8.RuneCountInString(s) != 1 {
		return "", c.Invalid("has %q as %s, not one character", s, key)
	}
	return s, err
}

// Count returns an integer from 0 to limit, or absent if there is no such key.
func (c Component) Count(key string, absent, limit int) (int, error) {
	v := c.Get(key)
	if v == nil {
		return absent, nil
	}
	n, err := strconv.Atoi(v.Text)
	if v.Kind != NumberNode || err != nil || n < 0 || n > limit {
		return 0, c.Invalid("has a %s that is not an integer from 0 to %d", key, limit)
	}
	return n, nil
}

func (c Component) Flag(key string) (bool, error) {
	v, err := c.Field(key, BoolNode)
	if err != nil {
		return false, err
	}
	return v.Text != "", nil
}

// Parts returns the components of an array.
func (c Component) Parts(key string) ([]Component, error) {
	v, err := c.Field(key, ArrayNode)
	if err != nil {
		return nil, err
	}
	out := make([]Component, len(v.List))
	for i, n := range v.List {
		if out[i], err = AsComponent(n, c.Part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CheckSteps fails if a component has more steps than a text may pass.
func (c Component) CheckSteps(n int) error {
	if n > limits.TokenizerSteps {
		return c.Unsupported("with %d steps is not supported: at most %d", n, limits.TokenizerSteps)
	}
	return nil
}

// ParseID returns the token id in n, or false if n is not a valid id.
func ParseID(n *Node) (int32, bool) {
	if n == nil || n.Kind != NumberNode {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	return int32(v), err == nil && v >= 0 && v <= MaxID
}
