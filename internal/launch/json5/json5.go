// Package json5 edits values in a JSON5 text (spec.json5.org, 1.0.0; JSON is a subset) and preserves everything else:
// comments, member order and unrelated values.
//
// Contract:
//   - A path is the list of object keys from the root. Set creates missing objects.
//   - Setting a value to itself does not change the text, so callers can compare Bytes to detect a change.
//   - New members are indented like their siblings.
package json5

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Errors.
var (
	// ErrSyntax reports a text that is not valid JSON5.
	ErrSyntax = errors.New("invalid JSON5")
	// ErrShape reports a path through a value that is not an object.
	ErrShape = errors.New("is not an object")
)

// Document is a text whose root is an object.
type Document struct {
	text []byte
	root *node

	batching bool   // edits are queued
	queued   []edit // edits to apply when the batch ends
}

// Parse reads a text. A text without a value is an empty object.
func Parse(text []byte) (*Document, error) {
	d := &Document{}
	if strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff")) == "" {
		text = []byte("{}\n")
	}
	return d, d.read(text)
}

func (d *Document) read(text []byte) error {
	root, err := parse(text)
	if err != nil {
		return err
	}
	if root.kind != object {
		return fmt.Errorf("the root %w", ErrShape)
	}
	d.text, d.root = text, root
	return nil
}

// Bytes returns a copy of the current text.
func (d *Document) Bytes() []byte { return bytes.Clone(d.text) }

// Keys returns the keys of the object at a path, in text order. It returns nil if there is no object.
func (d *Document) Keys(path ...string) []string {
	n, rest := d.find(path)
	if len(rest) > 0 {
		return nil
	}
	var keys []string
	for _, m := range n.members {
		keys = append(keys, m.key)
	}
	return keys
}

// Get returns the value at a path as nil, bool, string, json.Number, []any or map[string]any. A number that JSON cannot
// express (0x10, NaN) is returned as a string.
func (d *Document) Get(path ...string) (value any, found bool) {
	n, rest := d.find(path)
	if len(rest) > 0 {
		return nil, false
	}
	return n.value(), true
}

// Text returns the string at a path, or "" if there is none.
func (d *Document) Text(path ...string) string {
	v, _ := d.Get(path...)
	s, _ := v.(string)
	return s
}

// Set sets the value at a path, formatted by encoding/json.
func (d *Document) Set(value any, path ...string) error {
	n, rest := d.find(path)
	if len(rest) == 0 {
		same, err := equal(n.value(), value)
		if err != nil || same {
			return err
		}
		text, err := encode(value, d.indentAt(n.start))
		if err != nil {
			return err
		}
		return d.splice([]edit{{n.start, n.end, text}})
	}
	if n.kind != object {
		return fmt.Errorf("%s %w", strings.Join(path[:len(path)-len(rest)], "."), ErrShape)
	}
	for i := len(rest) - 1; i > 0; i-- {
		value = member{rest[i], value}
	}
	return d.insert(n, rest[0], value)
}

// member marshals as an object with one member.
type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m member) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{m.key: m.value}) }

// Delete removes members of the object at a path. It ignores keys that do not exist.
func (d *Document) Delete(path []string, keys ...string) error {
	n, rest := d.find(path)
	if len(rest) > 0 || n.kind != object {
		return nil
	}
	deleted := map[string]bool{}
	for _, k := range keys {
		deleted[k] = true
	}
	var edits []edit
	var kept *field
	for i := range n.members {
		m := &n.members[i]
		if !deleted[m.key] {
			kept = m
			continue
		}
		end := m.value.end
		if m.comma >= 0 {
			end = m.comma + 1
		}
		edits = append(edits, edit{d.before(m.start), end, ""})
	}
	if len(edits) > 0 && kept != nil {
		last := n.members[len(n.members)-1]
		if deleted[last.key] && last.comma < 0 && kept.comma >= 0 {
			// kept is the last member now, and the previous last member had no comma.
			edits = append(edits, edit{kept.comma, kept.comma + 1, ""})
		}
	}
	return d.splice(edits)
}

// Batch applies all edits of a function at once, which parses the text once instead of after each edit. No two edits
// may change the same member or add members to the same object.
func (d *Document) Batch(change func() error) error {
	d.batching = true
	err := change()
	edits := d.queued
	d.batching, d.queued = false, nil
	if err != nil {
		return err
	}
	return d.splice(edits)
}

// find follows a path as far as it exists. It returns the last value found and the rest of the path.
func (d *Document) find(path []string) (*node, []string) {
	n := d.root
	for len(path) > 0 {
		m := n.member(path[0])
		if m == nil {
			break
		}
		n, path = m.value, path[1:]
	}
	return n, path
}

// insert appends a member to an object.
func (d *Document) insert(n *node, key string, value any) error {
	brace := n.end - 1
	at := d.before(brace)
	lines := bytes.ContainsAny(d.text[n.start:brace], "\r\n")
	outer := d.indentAt(n.start)
	indent := outer + "  "
	if lines && len(n.members) > 0 {
		indent = d.indentAt(n.members[0].start)
	}
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	if !lines && len(n.members) > 0 {
		indent = ""
	}
	text, err := encode(value, indent)
	if err != nil {
		return err
	}
	if !lines && len(n.members) > 0 {
		var flat bytes.Buffer
		if err := json.Compact(&flat, []byte(text)); err != nil {
			return err
		}
		text = " " + string(name) + ": " + flat.String()
	} else {
		text = "\n" + indent + string(name) + ": " + text
	}
	var edits []edit
	if len(n.members) > 0 {
		last := n.members[len(n.members)-1]
		if last.comma < 0 {
			edits = append(edits, edit{last.value.end, last.value.end, ","})
		} else {
			text += ","
		}
	}
	if !bytes.ContainsAny(d.text[at:brace], "\r\n") && (lines || len(n.members) == 0) {
		text += "\n" + outer
	}
	return d.splice(append(edits, edit{at, at, text}))
}

// before returns the start of the white space that precedes an offset.
func (d *Document) before(at int) int {
	for at > 0 && strings.ContainsRune(" \t\r\n", rune(d.text[at-1])) {
		at--
	}
	return at
}

// indentAt returns the indentation of the line that contains an offset.
func (d *Document) indentAt(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// edit replaces text[start:end].
type edit struct {
	start, end int
	text       string
}

// splice applies edits and parses the result. The edits must not overlap. Edits at the same offset apply in order.
func (d *Document) splice(edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	if d.batching {
		d.queued = append(d.queued, edits...)
		return nil
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, d.text[done:e.start]...), e.text...)
		done = e.end
	}
	return d.read(append(out, d.text[done:]...))
}

// encode formats a value as JSON. Every line but the first starts with indent.
func encode(value any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, "  ")
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// equal reports whether a value of the document equals want after encoding.
func equal(have, want any) (bool, error) {
	text, err := encode(want, "")
	if err != nil {
		return false, err
	}
	n, err := parse([]byte(text))
	return err == nil && reflect.DeepEqual(have, n.value()), err
}
