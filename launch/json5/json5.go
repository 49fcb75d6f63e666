// Package json5 changes values in a JSON5 text (spec.json5.org, 1.0.0; plain JSON is part of it) and leaves the rest of the text as it is:
// comments, order, and what nobody asked for.
//
// Contract:
//   - A path is the keys of objects from the root on. Where objects are missing, Set makes them.
//   - A value that is there already changes nothing, so Bytes can tell whether anything did.
//   - New members have the indentation of those beside them.
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
	// ErrSyntax says that a text is no JSON5.
	ErrSyntax = errors.New("no JSON5")
	// ErrShape says that a path leads through what is no object.
	ErrShape = errors.New("is no object")
)

// Document is a text whose root is an object.
type Document struct {
	text []byte
	root *node

	together bool   // edits wait for one another
	waiting  []edit // in that case
}

// Parse reads a text. One without any value is an empty object.
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

// Bytes is the text as it is now.
func (d *Document) Bytes() []byte { return bytes.Clone(d.text) }

// Keys are those of the object at a path, in their order; none where no object is.
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

// Get gives the value at a path: nil, bool, string, json.Number, []any or map[string]any. A number that JSON does not have (0x10, NaN) is a
// string.
func (d *Document) Get(path ...string) (value any, found bool) {
	n, rest := d.find(path)
	if len(rest) > 0 {
		return nil, false
	}
	return n.value(), true
}

// Text gives the string at a path, "" where there is none.
func (d *Document) Text(path ...string) string {
	v, _ := d.Get(path...)
	s, _ := v.(string)
	return s
}

// Set puts a value at a path, as encoding/json writes it.
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

// member is an object of one member, in the making.
type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (m member) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{m.key: m.value}) }

// Delete removes members of the object at a path; those that are not there are left out.
func (d *Document) Delete(path []string, keys ...string) error {
	n, rest := d.find(path)
	if len(rest) > 0 || n.kind != object {
		return nil
	}
	gone := map[string]bool{}
	for _, k := range keys {
		gone[k] = true
	}
	var edits []edit
	var kept *field
	for i := range n.members {
		m := &n.members[i]
		if !gone[m.key] {
			kept = m
			continue
		}
		end := m.value.end
		if m.comma >= 0 {
			end = m.comma + 1
		}
		edits = append(edits, edit{d.before(m.start), end, ""})
	}
	if last := n.members[max(len(n.members)-1, 0):]; len(edits) > 0 && kept != nil && gone[last[0].key] && last[0].comma < 0 && kept.comma >= 0 {
		edits = append(edits, edit{kept.comma, kept.comma + 1, ""}) // it is the last now, and the last had none
	}
	return d.splice(edits)
}

// Together makes the changes of a function in one go, which is quicker where they are many. No two of them may be to one member, or add
// members to one object.
func (d *Document) Together(change func() error) error {
	d.together = true
	err := change()
	edits := d.waiting
	d.together, d.waiting = false, nil
	if err != nil {
		return err
	}
	return d.splice(edits)
}

// find goes along a path as far as it leads, and gives what is left of it.
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

// insert adds a member to an object, as its last.
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

// before is where the space before a place begins.
func (d *Document) before(at int) int {
	for at > 0 && strings.ContainsRune(" \t\r\n", rune(d.text[at-1])) {
		at--
	}
	return at
}

// indentAt is the indentation of the line that has a place.
func (d *Document) indentAt(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// edit is text in place of other text.
type edit struct {
	start, end int
	text       string
}

// splice makes edits, which do not overlap, and reads the text again. Those at one place come in their order.
func (d *Document) splice(edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	if d.together {
		d.waiting = append(d.waiting, edits...)
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

// encode writes a value whose lines after the first have an indentation.
func encode(value any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, "  ")
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// equal tells whether a value of a document is what another one would be written as.
func equal(have, want any) (bool, error) {
	text, err := encode(want, "")
	if err != nil {
		return false, err
	}
	n, err := parse([]byte(text))
	return err == nil && reflect.DeepEqual(have, n.value()), err
}
