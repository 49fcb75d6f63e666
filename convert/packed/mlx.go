package packed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/convert/packed/declared"
	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// MLX's tools write a packed layer X as X.weight (U32), X.scales and, in affine mode, X.biases, the same arrays as
// package quantize. The key quantization of config.json has the default bits, group_size and mode, and may have other
// values under a layer's path; true and false there state whether the layer is packed.
// https://github.com/ml-explore/mlx-lm/blob/v0.32.2/mlx_lm/utils.py (load_model, quantize_model)

// packing is the quantization of a layer.
type packing struct {
	bits, group int
	mode        string
}

func (p packing) String() string {
	if p.mode != affine {
		return fmt.Sprintf("%s, %d bits in groups of %d", p.mode, p.bits, p.group)
	}
	return fmt.Sprintf("%d bits in groups of %d", p.bits, p.group)
}

const affine = "affine"

// modeDefaults are the packings of modes without explicit numbers.
// https://github.com/ml-explore/mlx/blob/v0.32.4/python/mlx/nn/layers/quantized.py (_defaults_for_mode)
var modeDefaults = map[string]packing{
	affine: {4, 64, affine}, "mxfp4": {4, 32, "mxfp4"}, "mxfp8": {8, 32, "mxfp8"}, "nvfp4": {4, 16, "nvfp4"},
}

// format returns the quantize type of a packing.
func (p packing) format() (quantize.Type, error) {
	for _, t := range quantize.Types() {
		if t.Mode() == p.mode && t.Bits() == p.bits && t.Group() == p.group {
			return t, nil
		}
	}
	want := "2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128"
	if d := modeDefaults[p.mode]; p.mode != affine {
		want = fmt.Sprintf("%d bits in groups of %d", d.bits, d.group)
	}
	return 0, fmt.Errorf("there is no %s format of %d bits in groups of %d, want %s", p.mode, p.bits, p.group, want)
}

// mlxMap is the quantization configuration.
type mlxMap struct {
	c     *Checkpoint
	all   packing                    // the default
	paths map[string]json.RawMessage // by layer: its own packing, or whether it is packed
}

func findMLX(c *Checkpoint) (Found, error) {
	var f Found
	var layers []string
	for _, t := range c.Tensors() {
		layer, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || t.DType != safetensors.U32 {
			continue
		}
		layers = append(layers, layer)
	}
	if c.MLX == nil {
		for _, layer := range layers {
			if t, ok := c.Lookup(layer + ".scales"); ok {
				w, _ := c.Lookup(layer + ".weight")
				return f, wrong(w, "it is packed by MLX, with %s beside it, but config.json has no key %q "+
					"with its bits and group_size; add it", t.Name, declared.MLX)
			}
		}
		return f, nil
	}
	m, err := c.readMLX()
	if err != nil {
		return f, err
	}
	own := 0
	for _, layer := range layers {
		w, err := m.weight(layer)
		if err != nil {
			return f, err
		}
		if m.paths[layer] != nil {
			own++
		}
		f.Weights = append(f.Weights, w)
	}
	if err := m.checkPaths(); err != nil || len(f.Weights) == 0 {
		return f, err
	}
	f.What = "MLX: " + m.all.String()
	if own > 0 {
		f.What += fmt.Sprintf(", %d layers in ways of their own", own)
	}
	f.From = m.evidence(layers)
	return f, nil
}

// evidence lists the keys and tensors that revealed the packing.
func (m mlxMap) evidence(layers []string) []string {
	out := []string{fmt.Sprintf("config.json %s: bits %d, group_size %d, mode %s",
		m.c.mlxKey, m.all.bits, m.all.group, m.all.mode)}
	for i, path := range slices.Sorted(maps.Keys(m.paths)) {
		if i == maxEvidence {
			out = append(out, fmt.Sprintf("and %d further paths there", len(m.paths)-i))
			break
		}
		var flat bytes.Buffer
		if json.Compact(&flat, m.paths[path]) == nil {
			out = append(out, fmt.Sprintf("config.json %s.%q = %s", m.c.mlxKey, path, flat.Bytes()))
		}
	}
	return append(out, layers[0]+".weight (U32) with "+layers[0]+".scales")
}

// maxEvidence bounds the number of listed paths.
const maxEvidence = 8

// readMLX reads the configuration.
func (c *Checkpoint) readMLX() (mlxMap, error) {
	m := mlxMap{c: c, paths: map[string]json.RawMessage{}}
	var keys map[string]json.RawMessage
	if err := pyjson.Unmarshal(c.MLX, &keys); err != nil {
		return m, c.wrongConfig(c.mlxKey, "%v", err)
	}
	var err error
	if m.all, err = readPacking(c.MLX); err != nil {
		return m, c.wrongConfig(c.mlxKey, "%v", err)
	}
	for key, value := range keys {
		// Paths usually have a dot, but not those of top-level layers, so recognize them by their values.
		flat := string(bytes.TrimSpace(value))
		if declared.IsObject(value) || flat == "true" || flat == "false" && key != "quantize_input" {
			m.paths[key] = value
		}
	}
	delete(m.paths, "quantize_input")
	if _, err := m.all.format(); err != nil {
		return m, c.wrongConfig(c.mlxKey, "%v", err)
	}
	return m, nil
}

func readPacking(raw json.RawMessage) (packing, error) {
	var q struct {
		Bits  *int    `json:"bits"`
		Group *int    `json:"group_size"`
		Mode  *string `json:"mode"`
	}
	if err := pyjson.Unmarshal(raw, &q); err != nil {
		return packing{}, err
	}
	mode := affine
	if q.Mode != nil {
		mode = *q.Mode
	}
	p, ok := modeDefaults[mode]
	if !ok {
		return p, fmt.Errorf("mode = %q: want affine, mxfp4, mxfp8 or nvfp4", mode)
	}
	if q.Bits != nil {
		p.bits = *q.Bits
	}
	if q.Group != nil {
		p.group = *q.Group
	}
	return p, nil
}

// key returns the name of a layer's entry for messages.
func (m mlxMap) key(layer string) string { return m.c.mlxKey + "." + strconv.Quote(layer) }

// packing returns a layer's packing, and whether it is packed at all.
func (m mlxMap) packing(layer string) (p packing, key string, packed bool, err error) {
	own, ok := m.paths[layer]
	switch {
	case !ok || string(own) == "true":
		return m.all, m.c.mlxKey, true, nil
	case string(own) == "false":
		return p, m.key(layer), false, nil
	}
	key = m.key(layer)
	if p, err = readPacking(own); err != nil {
		err = m.c.wrongConfig(key, "%v", err)
	}
	return p, key, true, err
}

// weight reads a packed layer's headers.
func (m mlxMap) weight(layer string) (Weight, error) {
	codes, _ := m.c.Lookup(layer + ".weight")
	scales, scaled := m.c.Lookup(layer + ".scales")
	biases, biased := m.c.Lookup(layer + ".biases")
	p, key, packed, err := m.packing(layer)
	if err != nil {
		return Weight{}, err
	}
	if !packed {
		return Weight{}, wrong(codes, "it holds codes (U32), but according to config.json %s the layer is not packed; "+
			"correct the configuration", key)
	}
	t, err := p.format()
	if err != nil {
		return Weight{}, wrong(codes, "config.json %s declares its packing, but %w; "+
			"correct the configuration, or use another checkpoint", key, err)
	}
	if !scaled {
		return Weight{}, wrong(codes, "it holds codes (U32) of %s, but %s.scales is missing; download the checkpoint again",
			p, layer)
	}
	if global, ok := m.c.Lookup(layer + ".global_scale"); ok {
		return Weight{}, wrong(codes, "it is %s with a scale of the whole tensor (%s), "+
			"which this version does not support; %s", p, global.Name, usePlain)
	}
	w := Weight{
		Name: codes.Name, Parts: []safetensors.Source{codes, scales}, Type: t,
		DType: safetensors.BF16, Format: "MLX " + t.String(),
	}
	if t.Mode() == affine {
		if !biased {
			return Weight{}, wrong(codes, "it holds codes of %s, but %s.biases is missing; download the checkpoint again",
				p, layer)
		}
		w.Parts, w.DType = append(w.Parts, biases), scales.DType
	} else if biased {
		return Weight{}, wrong(biases, "layers of mode %s have no biases, and config.json %s declares that mode; "+
			"correct the configuration", p.mode, key)
	}
	if w.Shape, err = t.UnpackedShape(codes.Shape); err != nil {
		return Weight{}, wrong(codes, "it has shape %v, which is invalid for %s: "+
			"config.json %s is wrong, or the file is damaged", codes.Shape, p, key)
	}
	want, err := t.Parts(quantize.DType(w.DType), w.Shape)
	if err != nil {
		return Weight{}, wrong(scales, "its type is %s, want BF16, F16 or F32", scales.DType)
	}
	for i, part := range []quantize.Part{want.Packed, want.Scales, want.Biases}[:len(w.Parts)] {
		have := w.Parts[i]
		if string(have.DType) != string(part.DType) || !slices.Equal(have.Shape, part.Shape) {
			return Weight{}, wrong(have, "it is %s %v, but with %s of %s and %s (config.json %s) it would be %s %v; "+
				"correct the configuration, or download the checkpoint again",
				have.DType, have.Shape, codes.Name, fmt.Sprint(codes.Shape), p, key, part.DType, part.Shape)
		}
	}
	for _, rule := range strings.Split(codes.File.Header().Metadata["quant_rule"], ",") {
		if rule == t.Rule() {
			w.Rule = rule
		}
	}
	w.Read = mlxWeight{w.Parts, t, quantize.DType(w.DType)}
	return w, nil
}

// checkPaths verifies that the configured layers exist and are packed.
func (m mlxMap) checkPaths() error {
	for _, layer := range slices.Sorted(maps.Keys(m.paths)) {
		p, key, packed, err := m.packing(layer)
		if err != nil {
			return err
		}
		t, ok := m.c.Lookup(layer + ".weight")
		switch {
		case packed && !ok:
			return m.c.wrongConfig(key, "there is no tensor %s.weight; remove the key, or correct the path", layer)
		case packed && t.DType != safetensors.U32:
			return wrong(t, "it is %s, but config.json %s declares it packed in %s; "+
				"remove the key, or download the checkpoint again", t.DType, key, p)
		}
	}
	return nil
}

// mlxWeight reads a weight with the arrays of a quantize type.
type mlxWeight struct {
	parts  []safetensors.Source // codes, scales, biases
	format quantize.Type
	dtype  quantize.DType
}

func (w mlxWeight) Codes(dst quantize.Blocks, begin, _ int64) error {
	size, group := w.format.GroupSizes(w.dtype), begin/int64(w.format.Group())
	for i, p := range []struct {
		dst []byte
		one int
	}{{dst.Packed, size.Packed}, {dst.Scales, size.Scales}, {dst.Biases, size.Biases}} {
		if p.one == 0 {
			continue
		}
		if err := numbers.ReadAt(w.parts[i], p.dst, group*int64(p.one)); err != nil {
			return err
		}
	}
	return nil
}

// Floats decodes in float32. Widening scales and biases to float32 is exact.
func (w mlxWeight) Floats(dst []byte, begin, count int64) error {
	size, groups := w.format.GroupSizes(w.dtype), int(count)/w.format.Group()
	buf := make([]byte, groups*(size.Packed+size.Scales+size.Biases))
	var b quantize.Blocks
	b.Packed, buf = buf[:groups*size.Packed], buf[groups*size.Packed:]
	b.Scales, b.Biases = buf[:groups*size.Scales], buf[groups*size.Scales:]
	if err := w.Codes(b, begin, count); err != nil {
		return err
	}
	if w.format.Mode() == affine && w.dtype != quantize.F32 {
		for _, p := range []*[]byte{&b.Scales, &b.Biases} {
			wide := make([]byte, 4*groups)
			if err := quantize.Cast(wide, quantize.F32, *p, w.dtype); err != nil {
				return err
			}
			*p = wide
		}
	}
	return w.format.Decode(dst, quantize.F32, b, quantize.F32)
}
