package config

import (
	"encoding/json"
	"maps"
)

// ParseLayerRope reads the rope parameters of one layer type, which rope_parameters holds under the type's name. Keys
// of over, a nested object such as the older rope_scaling, take precedence.
func ParseLayerRope(o Object, kind string, over Object, context int, opts RopeOptions) Rope {
	in := Object{Prefix: o.path("rope_parameters") + "." + kind + ".", Keys: map[string]json.RawMessage{}, Err: o.Err}
	params, ok := o.Object("rope_parameters")
	if !ok && opts.Kind != "" {
		return Rope{Type: opts.Kind, Theta: opts.Theta, PartialFactor: opts.Partial, Factor: 1}
	}
	if ok {
		if !params.Has(FullAttention) && !params.Has(SlidingAttention) {
			o.Fail("rope_parameters", "hold parameters per layer type")
		}
		if own, ok := params.Object(kind); ok {
			in = own
		}
		if opts.Inherit {
			in = in.inherit(o, "rope_theta", "partial_rotary_factor")
		}
	}
	if len(over.Keys) > 0 {
		in.Keys = maps.Clone(in.Keys)
		in.outer = map[string]string{}
		for k, v := range over.Keys {
			in.Keys[k], in.outer[k] = v, over.Prefix
		}
	}
	// A layer's own parameters alone say which context was scaled.
	o = o.without("original_max_position_embeddings")
	r := ReadRope(o, in, orDefault(opts.Theta, DefaultTheta), orDefault(opts.OwnPartial, 1), context, opts)
	if r.Type != RopeProportional && opts.OwnPartial == 0 {
		r.IgnorePartial(o)
	}
	return r
}

// inherit returns o with the keys of outer that it lacks.
func (o Object) inherit(outer Object, keys ...string) Object {
	o.Keys, o.outer = maps.Clone(o.Keys), map[string]string{}
	for _, key := range keys {
		if outer.Has(key) && !o.Has(key) {
			o.Keys[key], o.outer[key] = outer.Keys[key], outer.Prefix
		}
	}
	return o
}

// without returns o as if it lacked a key.
func (o Object) without(key string) Object {
	o.Keys = maps.Clone(o.Keys)
	delete(o.Keys, key)
	return o
}
