package arch

import (
	"encoding/json"
	"maps"
)

// parseLayerRope reads the rope parameters of one layer type, which rope_parameters holds under the type's name. Keys
// of over, a nested object such as the older rope_scaling, take precedence.
func parseLayerRope(o object, kind string, over object, context int, opts ropeOptions) Rope {
	in := object{prefix: o.path("rope_parameters") + "." + kind + ".", raw: map[string]json.RawMessage{}, err: o.err}
	params, ok := o.object("rope_parameters")
	if !ok && opts.kind != "" {
		return Rope{Type: opts.kind, Theta: opts.theta, PartialFactor: opts.partial, Factor: 1}
	}
	if ok {
		if !params.has(fullAttention) && !params.has(slidingAttention) {
			o.fail("rope_parameters", "hold parameters per layer type")
		}
		if own, ok := params.object(kind); ok {
			in = own
		}
		if opts.inherit {
			in = in.inherit(o, "rope_theta", "partial_rotary_factor")
		}
	}
	if len(over.raw) > 0 {
		in.raw = maps.Clone(in.raw)
		in.outer = map[string]string{}
		for k, v := range over.raw {
			in.raw[k], in.outer[k] = v, over.prefix
		}
	}
	// A layer's own parameters alone say which context was scaled.
	o = o.without("original_max_position_embeddings")
	r := readRope(o, in, orDefault(opts.theta, defaultTheta), orDefault(opts.ownPartial, 1), context, opts)
	if r.Type != RopeProportional && opts.ownPartial == 0 {
		r.ignorePartial(o)
	}
	return r
}

// inherit returns o with the keys of outer that it lacks.
func (o object) inherit(outer object, keys ...string) object {
	o.raw, o.outer = maps.Clone(o.raw), map[string]string{}
	for _, key := range keys {
		if outer.has(key) && !o.has(key) {
			o.raw[key], o.outer[key] = outer.raw[key], outer.prefix
		}
	}
	return o
}

// without returns o as if it lacked a key.
func (o object) without(key string) object {
	o.raw = maps.Clone(o.raw)
	delete(o.raw, key)
	return o
}
