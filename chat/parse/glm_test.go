package parse

import (
	"strings"
	"testing"
)

// tags expands K( )K V( )V to the tags of GLM.
func tags(s string) string {
	return strings.NewReplacer("K(", "<arg_key>", ")K", "</arg_key>", "V(", "<arg_value>", ")V", "</arg_value>").Replace(s)
}

// Damaged calls and their repaired text.
func TestGLMRepair(t *testing.T) {
	for _, c := range []struct{ in, want, args string }{
		{"fK(k)KV(v)V", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(k)KV(v", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(a)KV(1K(b)KV(2)V", "fK(a)KV(1)VK(b)KV(2)V", `{"a":"1","b":"2"}`},
		{"f", "f", `{}`},
		{"fK(k)Kv)V", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(kV(v)V", "fK(k)KV(v)V", `{"k":"v"}`},
		{"f k)KV(v)V", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(kV(v", "fK(k)KV(v)V", `{"k":"v"}`},
		{"f k)Kv)V", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(a)K1)VK(bV(2)V", "fK(a)KV(1)VK(b)KV(2)V", `{"a":"1","b":"2"}`},
		{"f\nK(c)K\ntwo words)V", "f\nK(c)KV(\ntwo words)V", `{"c":"two words"}`},
		{"f\nK(a)K\nx\n)V\nK(b)K\ny z\n)V\n", "f\nK(a)KV(\nx\n)V\nK(b)KV(\ny z\n)V", `{"a":"x","b":"y z"}`},
		{"f\nK(a)KV(x)V\nK(b)K\ny)V", "f\nK(a)KV(x)V\nK(b)KV(\ny)V", `{"a":"x","b":"y"}`},
		{"fK(k)V", "fK()KV(k)V", `{"":"k"}`},
		{"fK(a)KV(1)Vb)KV(2)V", "fK(a)KV(1)VK(b)KV(2)V", `{"a":"1","b":"2"}`},
		{"f a)K1)Vb)K2)V", "fK(a)KV(1)VK(b)KV(2)V", `{"a":"1","b":"2"}`},
		{"fK(k", "fK(k)KV()V", `{"k":""}`},
		{"fK(k)K", "fK(k)KV()V", `{"k":""}`},
		{"fV(v)V", "fK()KV(v)V", `{"":"v"}`},
		{"fK(k)Kv", "fK(k)KV(v)V", `{"k":"v"}`},
		{"fK(aK(b)KV(1)V", "fK()KV(a)VK(b)KV(1)V", `{"":"a","b":"1"}`},
		{"f)K", "fK()KV()V", `{"":""}`},
	} {
		if got := glmRepair(tags(c.in)); got != tags(c.want) {
			t.Errorf("%q: got %q, want %q", tags(c.in), got, tags(c.want))
		}
		check(t, "glm-4.7", offered, "<tool_call>"+tags(c.in)+"</tool_call>", "f"+c.args)
	}
}
