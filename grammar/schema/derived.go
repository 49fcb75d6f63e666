package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
)

// Some keywords are merged as other schemas with the same meaning, which are made here, once for each.

func textValue(s string) *value        { return &value{kind: typeString, text: s} }
func listValue(items ...*value) *value { return &value{kind: typeArray, items: items} }

func namesValue(names ...string) *value {
	v := &value{kind: typeArray}
	for _, n := range names {
		v.items = append(v.items, textValue(n))
	}
	return v
}

// objectValue returns the schema with these keys and values in turn.
func objectValue(pairs ...any) *value {
	v := &value{kind: typeObject}
	for i := 0; i < len(pairs); i += 2 {
		v.keys = append(v.keys, pairs[i].(string))
		v.items = append(v.items, pairs[i+1].(*value))
	}
	return v
}

// derive returns the schema that build makes for a place of a schema, always the same one.
func (c *compiler) derive(of *value, name string, build func() *value) *value {
	k := derivedKey{of, name}
	v := c.derived[k]
	if v == nil {
		v = build()
		c.derived[k] = v
	}
	return v
}

type derivedKey struct {
	of   *value
	name string
}

// conditions returns the alternatives of if, then and else.
func (c *compiler) conditions(v *value, t term) []term {
	var yes, no []*value
	if then := t.schema.get("then"); then != nil {
		yes = append(yes, then)
	}
	if otherwise := t.schema.get("else"); otherwise != nil {
		no = append(no, otherwise)
	}
	first := c.derive(v, "if", func() *value { return objectValue("allOf", listValue(append([]*value{v}, yes...)...)) })
	second := c.derive(v, "else", func() *value {
		return objectValue("allOf", listValue(append([]*value{objectValue("not", v)}, no...)...))
	})
	return []term{t.same(first, ""), t.same(second, "")}
}

// gatherDependencies merges dependentRequired, dependentSchemas, or both as dependencies.
func (c *compiler) gatherDependencies(s *shape, v *value, t term) {
	if v.kind != typeObject {
		c.fail(expr.ErrInvalid, t.path, "dependencies must be an object")
		return
	}
	for i, name := range v.keys {
		needs := v.items[i]
		if needs.kind == typeString { // draft 3, and common in draft 4
			needs = c.derive(needs, "list", func() *value { return listValue(needs) })
		}
		if needs.kind == typeArray && len(needs.items) == 0 || needs.kind == typeBoolean && needs.truth {
			continue
		}
		absent := c.derive(needs, "absent\x00"+name, func() *value { return objectValue(absentKeyword, namesValue(name)) })
		present := c.derive(needs, "present\x00"+name, func() *value {
			if needs.kind == typeArray {
				all := append([]*value{textValue(name)}, needs.items...)
				return objectValue("type", textValue("object"), "required", listValue(all...))
			}
			return objectValue("type", textValue("object"), "required", namesValue(name), "allOf", listValue(needs))
		})
		s.unions = append(s.unions, union{parts: []term{t.same(absent, "/dependencies/"+pointerPart(name)),
			t.same(present, "/dependencies/"+pointerPart(name))}})
	}
}

// target returns the schema that a reference points to.
func (c *compiler) target(ref string, t term) (term, bool) {
	schema, in, err := c.doc.resolve(ref, t.in)
	if err != nil {
		c.failAt(t.path, err)
		return t, false
	}
	if t.schema.get("$dynamicRef") != nil || t.schema.get("$recursiveRef") != nil {
		schema, in = c.dynamic(ref, t, schema, in)
	}
	path := ref
	if t.path != "" && !strings.HasPrefix(ref, "#") {
		path = "#" + ref
	}
	t.schema, t.in, t.path, t.only = schema, in, path, ""
	t.outer = c.enter(t.outer, in)
	return t, true
}

// dynamic returns the outermost schema on the way to t that a $dynamicRef or $recursiveRef may refer to.
func (c *compiler) dynamic(ref string, t term, schema *value, in *resource) (*value, *resource) {
	_, name, _ := strings.Cut(ref, "#")
	recursive := t.schema.get("$recursiveRef") != nil
	if recursive && !in.outer || !recursive && in.dynamic[name] != schema {
		return schema, in
	}
	for _, id := range strings.Split(t.outer, ",") {
		i, err := strconv.Atoi(id)
		if err != nil {
			continue
		}
		r := c.resources[i]
		if recursive && r.outer {
			return r.root, r
		}
		if at := r.dynamic[name]; !recursive && at != nil {
			return at, r
		}
	}
	return schema, in
}

// enter adds a resource to those on the way, if the document has references that depend on it.
func (c *compiler) enter(outer string, r *resource) string {
	if !c.isDynamic {
		return ""
	}
	i := slices.Index(c.resources, r)
	if i < 0 {
		i = len(c.resources)
		c.resources = append(c.resources, r)
	}
	id := fmt.Sprint(i)
	if slices.Contains(strings.Split(outer, ","), id) {
		return outer
	}
	return strings.TrimPrefix(outer+","+id, ",")
}
