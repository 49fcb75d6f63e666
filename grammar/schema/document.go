package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/refs"
)

// resource is a schema with an identifier of its own, or the root.
type resource struct {
	base    *url.URL
	root    *value
	dialect dialect
	anchors map[string]*value
	dynamic map[string]*value // $dynamicAnchor
	outer   bool              // $recursiveAnchor
}

// document is a schema's text: its resources, and which one each schema belongs to.
type document struct {
	root *resource
	old  bool // it is written as before draft 2019-09, though it does not say so
	byID map[string]*resource
	of   map[*value]*resource
	refs map[string][]byte // see Options

	resolved map[reference]target
}

// reference is a $ref in a resource, target what it points to.
type (
	reference struct {
		ref string
		in  *resource
	}
	target struct {
		schema *value
		in     *resource
	}
)

func newDocument(root *value, refs map[string][]byte) *document {
	d := &document{byID: map[string]*resource{}, of: map[*value]*resource{}, refs: refs,
		resolved: map[reference]target{}}
	d.root = newResource(&url.URL{}, root, anyDraft)
	d.old = root.kind == typeObject && root.get("definitions") != nil && root.get("$defs") == nil
	d.byID[""] = d.root
	d.visit(root, d.root)
	return d
}

func newResource(base *url.URL, root *value, of dialect) *resource {
	r := &resource{base: base, root: root, dialect: of, anchors: map[string]*value{}, dynamic: map[string]*value{}}
	if s := root.text0("$schema"); s != "" {
		r.dialect = dialectOf(s)
	}
	if v := root.get("$recursiveAnchor"); v != nil {
		r.outer = v.truth
	}
	return r
}

// text0 returns the string at a key, or "".
func (v *value) text0(key string) string {
	if at := v.get(key); at != nil && at.kind == typeString {
		return at.text
	}
	return ""
}

// visit notes the identifiers and anchors of v and the schemas in it, which belong to r unless they have their own.
func (d *document) visit(v *value, r *resource) {
	if v.kind != typeObject || d.of[v] != nil {
		return
	}
	of := r.dialect
	if s := v.text0("$schema"); s != "" {
		of = dialectOf(s)
	}
	id := v.text0("$id")
	if of == draft4 || id == "" && of == anyDraft && strings.Contains(v.text0("id"), "://") {
		id = v.text0("id")
	}
	if (of.refAlone() || of == anyDraft && d.old && v != r.root) && v.get("$ref") != nil {
		id = "" // ignored until draft 7
	}
	if name, fragment := strings.CutPrefix(id, "#"); fragment {
		r.anchors[name] = v
	} else if u, err := url.Parse(id); id != "" && err == nil {
		base := r.base.ResolveReference(u)
		name := base.Fragment
		base.Fragment = ""
		if v != r.root {
			r = newResource(base, v, r.dialect)
		} else {
			r.base = base
		}
		if d.byID[base.String()] == nil {
			d.byID[base.String()] = r
		}
		if name != "" {
			r.anchors[name] = v
		}
	}
	d.of[v] = r
	if name := v.text0("$anchor"); name != "" && r.dialect.has("$anchor") && r.anchors[name] == nil {
		r.anchors[name] = v
	}
	if name := v.text0("$dynamicAnchor"); name != "" && r.dialect.has("$dynamicAnchor") {
		r.anchors[name], r.dynamic[name] = v, v
	}
	if r.dialect.refAlone() && v.get("$ref") != nil {
		return
	}
	for i, k := range v.keys {
		item := v.items[i]
		switch {
		case holdsMap[k] && item.kind == typeObject, holdsList[k] && item.kind == typeArray:
			for _, s := range item.items {
				d.visit(s, r)
			}
		case holdsSchema[k]:
			d.visit(item, r)
		}
	}
}

// load adds the schema that the options have for an address; nil if they have none. Without $schema it is of the draft
// that refers to it.
func (d *document) load(at *url.URL, of dialect) (*resource, error) {
	name := at.String()
	if at.Scheme+at.Host == "" { // ResolveReference makes a path absolute
		name = strings.TrimPrefix(name, "/")
	}
	source, ok := d.refs[name]
	if !ok {
		if source = refs.Metaschema(name); source == nil {
			return nil, nil
		}
	}
	root, err := readValue(source)
	if err != nil {
		return nil, err
	}
	r := newResource(at, root, of)
	d.byID[at.String()] = r
	d.visit(root, r)
	return r, nil
}

// resourceOf returns the resource of a schema that a reference found in r.
func (d *document) resourceOf(v *value, r *resource) *resource {
	if d.of[v] == nil {
		d.visit(v, r)
	}
	if own := d.of[v]; own != nil {
		return own
	}
	return r
}

// resolve returns the schema that a reference in r points to, and the resource that it belongs to.
func (d *document) resolve(ref string, r *resource) (*value, *resource, error) {
	key := reference{ref, r}
	if known, ok := d.resolved[key]; ok {
		return known.schema, known.in, nil
	}
	schema, in, err := d.find(ref, r)
	if err == nil {
		d.resolved[key] = target{schema, in}
	}
	return schema, in, err
}

var pointerCharacters = strings.NewReplacer("~1", "/", "~0", "~")

func (d *document) find(ref string, r *resource) (*value, *resource, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q is not a URI reference", ref)
	}
	to := r
	if u.Scheme+u.Host+u.Path+u.Opaque != "" {
		full := r.base.ResolveReference(u)
		full.Fragment, full.RawFragment = "", ""
		if to = d.byID[full.String()]; to == nil {
			if to, err = d.load(full, r.dialect); err != nil {
				return nil, nil, fmt.Errorf("$ref %q: %w", ref, err)
			}
		}
		if to == nil {
			return nil, nil, expr.Errorf(expr.ErrUnsupported,
				"$ref %q: the schema is not here, and nothing is fetched; put it into $defs", ref)
		}
	}
	fragment := u.Fragment
	if fragment == "" {
		return to.root, to, nil
	}
	if fragment[0] != '/' {
		if at := to.anchors[fragment]; at != nil {
			return at, d.resourceOf(at, to), nil
		}
		return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q: no such anchor", ref)
	}
	at, in := to.root, to
	for _, part := range strings.Split(fragment, "/")[1:] {
		part = pointerCharacters.Replace(part)
		var next *value
		if at.kind == typeArray {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.items) {
				next = at.items[i]
			}
		} else {
			next = at.get(part)
		}
		if next == nil {
			return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q: %q does not exist", ref, part)
		}
		at = next
		if own := d.of[at]; own != nil {
			in = own
		}
	}
	return at, d.resourceOf(at, in), nil
}
