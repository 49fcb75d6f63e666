// Package document finds the schemas that references in a schema lead to.
//
// Contract: nothing is fetched. A document grows while references are resolved; it belongs to one goroutine.
package document

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/refs"
	"github.com/ingotml/ingot/grammar/value"
)

// Resource is a schema with an identifier of its own, or the root.
type Resource struct {
	base    *url.URL
	Root    *value.Value
	Dialect Dialect
	anchors map[string]*value.Value
	Dynamic map[string]*value.Value // $dynamicAnchor
	Outer   bool                    // $recursiveAnchor
}

// Document is a schema's text: its resources, and which one each schema belongs to.
type Document struct {
	Root *Resource
	old  bool // it is written as before draft 2019-09, though it does not say so
	byID map[string]*Resource
	of   map[*value.Value]*Resource
	refs map[string][]byte // see New

	resolved map[reference]target
}

// reference is a $ref in a resource, target what it points to.
type (
	reference struct {
		ref string
		in  *Resource
	}
	target struct {
		schema *value.Value
		in     *Resource
	}
)

// New returns the document of a schema. refs are the schemas that a reference may lead to, by their addresses.
func New(root *value.Value, refs map[string][]byte) *Document {
	d := &Document{byID: map[string]*Resource{}, of: map[*value.Value]*Resource{}, refs: refs,
		resolved: map[reference]target{}}
	d.Root = newResource(&url.URL{}, root, AnyDraft)
	d.old = root.Kind == value.Object && root.Get("definitions") != nil && root.Get("$defs") == nil
	d.byID[""] = d.Root
	d.visit(root, d.Root)
	return d
}

func newResource(base *url.URL, root *value.Value, of Dialect) *Resource {
	r := &Resource{base: base, Root: root, Dialect: of, anchors: map[string]*value.Value{},
		Dynamic: map[string]*value.Value{}}
	if s := root.StringAt("$schema"); s != "" {
		r.Dialect = dialectOf(s)
	}
	if v := root.Get("$recursiveAnchor"); v != nil {
		r.Outer = v.Truth
	}
	return r
}

// visit notes the identifiers and anchors of v and the schemas in it, which belong to r unless they have their own.
func (d *Document) visit(v *value.Value, r *Resource) {
	if v.Kind != value.Object || d.of[v] != nil {
		return
	}
	of := r.Dialect
	if s := v.StringAt("$schema"); s != "" {
		of = dialectOf(s)
	}
	id := v.StringAt("$id")
	if of == Draft4 || id == "" && of == AnyDraft && strings.Contains(v.StringAt("id"), "://") {
		id = v.StringAt("id")
	}
	if (of.RefAlone() || of == AnyDraft && d.old && v != r.Root) && v.Get("$ref") != nil {
		id = "" // ignored until draft 7
	}
	if name, fragment := strings.CutPrefix(id, "#"); fragment {
		r.anchors[name] = v
	} else if u, err := url.Parse(id); id != "" && err == nil {
		base := r.base.ResolveReference(u)
		name := base.Fragment
		base.Fragment = ""
		if v != r.Root {
			r = newResource(base, v, r.Dialect)
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
	if name := v.StringAt("$anchor"); name != "" && r.Dialect.Has("$anchor") && r.anchors[name] == nil {
		r.anchors[name] = v
	}
	if name := v.StringAt("$dynamicAnchor"); name != "" && r.Dialect.Has("$dynamicAnchor") {
		r.anchors[name], r.Dynamic[name] = v, v
	}
	if r.Dialect.RefAlone() && v.Get("$ref") != nil {
		return
	}
	for i, k := range v.Keys {
		item := v.Items[i]
		switch {
		case holdsMap[k] && item.Kind == value.Object, holdsList[k] && item.Kind == value.Array:
			for _, s := range item.Items {
				d.visit(s, r)
			}
		case holdsSchema[k]:
			d.visit(item, r)
		}
	}
}

// load adds the schema that the options have for an address; nil if they have none. Without $schema it is of the draft
// that refers to it.
func (d *Document) load(at *url.URL, of Dialect) (*Resource, error) {
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
	root, err := value.Read(source)
	if err != nil {
		return nil, err
	}
	r := newResource(at, root, of)
	d.byID[at.String()] = r
	d.visit(root, r)
	return r, nil
}

// ResourceOf returns the resource of a schema that a reference found in r.
func (d *Document) ResourceOf(v *value.Value, r *Resource) *Resource {
	if d.of[v] == nil {
		d.visit(v, r)
	}
	if own := d.of[v]; own != nil {
		return own
	}
	return r
}

// Resolve returns the schema that a reference in r points to, and the resource that it belongs to.
func (d *Document) Resolve(ref string, r *Resource) (*value.Value, *Resource, error) {
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

func (d *Document) find(ref string, r *Resource) (*value.Value, *Resource, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q is not a URI reference", ref)
	}
	to := r
	if u.Scheme+u.Host+u.Path+u.Opaque != "" {
		full := r.base.ResolveReference(u)
		full.Fragment, full.RawFragment = "", ""
		if to = d.byID[full.String()]; to == nil {
			if to, err = d.load(full, r.Dialect); err != nil {
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
		return to.Root, to, nil
	}
	if fragment[0] != '/' {
		if at := to.anchors[fragment]; at != nil {
			return at, d.ResourceOf(at, to), nil
		}
		return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q: no such anchor", ref)
	}
	at, in := to.Root, to
	for _, part := range strings.Split(fragment, "/")[1:] {
		part = pointerCharacters.Replace(part)
		var next *value.Value
		if at.Kind == value.Array {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(at.Items) {
				next = at.Items[i]
			}
		} else {
			next = at.Get(part)
		}
		if next == nil {
			return nil, nil, expr.Errorf(expr.ErrInvalid, "$ref %q: %q does not exist", ref, part)
		}
		at = next
		if own := d.of[at]; own != nil {
			in = own
		}
	}
	return at, d.ResourceOf(at, in), nil
}
