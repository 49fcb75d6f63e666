package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/document"
	"github.com/ingotml/ingot/grammar/value"
)

// target returns the schema that a reference points to.
func (c *compiler) target(ref string, t term) (term, bool) {
	schema, in, err := c.doc.Resolve(ref, t.in)
	if err != nil {
		c.failAt(t.path, err)
		return t, false
	}
	if t.schema.Get("$dynamicRef") != nil || t.schema.Get("$recursiveRef") != nil {
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
func (c *compiler) dynamic(ref string, t term, schema *value.Value, in *document.Resource) (*value.Value,
	*document.Resource) {
	_, name, _ := strings.Cut(ref, "#")
	recursive := t.schema.Get("$recursiveRef") != nil
	if recursive && !in.Outer || !recursive && in.Dynamic[name] != schema {
		return schema, in
	}
	for _, id := range strings.Split(t.outer, ",") {
		i, err := strconv.Atoi(id)
		if err != nil {
			continue
		}
		r := c.resources[i]
		if recursive && r.Outer {
			return r.Root, r
		}
		if at := r.Dynamic[name]; !recursive && at != nil {
			return at, r
		}
	}
	return schema, in
}

// enter adds a resource to those on the way, if the document has references that depend on it.
func (c *compiler) enter(outer string, r *document.Resource) string {
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
