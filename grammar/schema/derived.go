package schema

import (
	"github.com/ingotml/ingot/grammar/value"
)

// derive returns the schema that build makes for a place of a schema, always the same one.
func (c *compiler) derive(of *value.Value, name string, build func() *value.Value) *value.Value {
	k := derivedKey{of, name}
	v := c.derived[k]
	if v == nil {
		v = build()
		c.derived[k] = v
	}
	return v
}

// absentKeyword is a keyword that sources cannot have: an object has none of these properties.
const absentKeyword = "\x00absent"

// silentKeyword marks a schema made by the compiler whose properties are not the object's own list of them.
const silentKeyword = "\x00silent"
