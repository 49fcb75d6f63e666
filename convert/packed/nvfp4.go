package packed

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Weights of 4-bit floats (E2M1) are stored two to a byte, the first in the lower half, as in package quantize, with an
// E4M3 scale per 16 elements (nvfp4) or a power of two per 32 (mxfp4). nvfp4 also has a scale of the whole tensor:
// compressed-tensors (X.weight_packed, X.weight_scale, X.weight_global_scale) divides by it, ModelOpt (X.weight,
// X.weight_scale, X.weight_scale_2) multiplies. DeepSeek V4 has bytes of type I8, with powers of two in X.scale.
// https://github.com/vllm-project/compressed-tensors/tree/0.12.2/src/compressed_tensors/compressors
// (quantized_compressors/fp4_quantized.py)
// https://github.com/NVIDIA/TensorRT-Model-Optimizer/blob/0.33.0/modelopt/torch/quantization/qtensor/nvfp4_tensor.py

func findFP4(c *Checkpoint) (Found, error) {
	var f Found
	kinds := map[string]int{}
	for _, t := range c.Tensors() {
		if t.DType != safetensors.U8 && t.DType != safetensors.I8 {
			continue
		}
		list, ok, err := c.stackedFP4(t)
		if !ok {
			var w Weight
			w, ok, err = c.fp4Of(t)
			list = []Weight{w}
		}
		if err != nil {
			return f, err
		}
		if !ok {
			continue
		}
		kinds[list[0].Format]++
		f.Weights = append(f.Weights, list...)
	}
	if len(f.Weights) == 0 {
		return f, nil
	}
	f.What = counted(kinds)
	f.From = c.fp4Config()
	var parts []string
	for _, p := range f.Weights[0].Parts {
		parts = append(parts, fmt.Sprintf("%s (%s %v)", p.Name, p.DType, p.Shape))
	}
	f.From = append(f.From, strings.Join(parts, ", "))
	f.Ignored = c.activationScales()
	return f, nil
}

// fp4Of reads the headers of the weight whose codes are t; ok is false if they are not codes.
func (c *Checkpoint) fp4Of(t safetensors.Source) (w Weight, ok bool, err error) {
	if strings.HasSuffix(t.Name, blocksEnd) {
		w, err = c.blocks(t)
		return w, true, err
	}
	name, packed := strings.CutSuffix(t.Name, ".weight_packed")
	if !packed {
		if name, ok = strings.CutSuffix(t.Name, ".weight"); !ok {
			return w, false, nil
		}
	}
	scale := name + ".weight_scale"
	if t.DType == safetensors.I8 {
		if scale = name + ".scale"; !c.isDeepseekFP4(t) {
			return w, false, nil
		}
	}
	w, err = c.fp4(name, scale, t, packed)
	return w, true, err
}

// isDeepseekFP4 reports whether bytes X.weight of type I8 hold 4-bit floats and not integers.
func (c *Checkpoint) isDeepseekFP4(t safetensors.Source) bool {
	name, ok := strings.CutSuffix(t.Name, ".weight")
	s, there := c.Lookup(name + ".scale")
	return ok && there && t.DType == safetensors.I8 && s.DType == safetensors.F8E8M0
}

// fp4Config lists the relevant keys of config.json, or of the file that ModelOpt writes beside it.
func (c *Checkpoint) fp4Config() (from []string) {
	type keys struct {
		Method string `json:"quant_method"`
		Format string `json:"format"`
		Algo   string `json:"quant_algo"`
	}
	say := func(where string, k keys) {
		for _, v := range []struct{ key, value string }{
			{"quant_method", k.Method}, {"format", k.Format}, {"quant_algo", k.Algo},
		} {
			if v.value != "" {
				from = append(from, fmt.Sprintf("%s.%s = %q", where, v.key, v.value))
			}
		}
	}
	var k keys
	if c.HF != nil && pyjson.Unmarshal(c.HF, &k) == nil {
		say("config.json "+c.hfKey, k)
	}
	var file struct {
		Quantization keys `json:"quantization"`
	}
	const name = "hf_quant_config.json"
	if data := c.File(name); len(from) == 0 && data != nil && pyjson.Unmarshal(bytes.TrimSpace(data), &file) == nil {
		say(name+" quantization", file.Quantization)
	}
	return from
}

// fp4 reads a weight's headers, and its scale of the whole tensor.
func (c *Checkpoint) fp4(name, scale string, t safetensors.Source, packed bool) (Weight, error) {
	scales, ok := c.Lookup(scale)
	if !ok {
		return Weight{}, wrong(t, "it holds 4-bit codes in bytes, but %s is missing; download the checkpoint again", scale)
	}
	if w, ok := mxfp6(name, t, scales); ok && packed {
		return w, nil
	}
	w := Weight{
		Name: name + ".weight", DType: safetensors.BF16, Parts: []safetensors.Source{t, scales},
		Type: quantize.NVFP4, Format: "nvfp4",
	}
	if n := len(t.Shape); n != 2 && n != 3 || numbers.Count(t.Shape) == 0 {
		return w, wrong(t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
	}
	last := len(t.Shape) - 1
	w.Shape = append([]int64{}, t.Shape...)
	w.Shape[last] *= 2
	switch scales.DType {
	case safetensors.F8E4M3:
	case safetensors.U8, safetensors.F8E8M0:
		w.Type, w.Format = quantize.MXFP4, "mxfp4"
	default:
		return w, wrong(scales, "it is %s, want F8_E4M3 (nvfp4) or U8 (mxfp4); download the checkpoint again", scales.DType)
	}
	want, err := w.Type.Parts(quantize.BF16, w.Shape)
	if err != nil {
		return w, wrong(t, "rows of %d elements are not whole groups of %s; download the checkpoint again",
			w.Shape[last], w.Type)
	}
	if scales.Size() != want.Scales.Size() || len(scales.Shape) != len(t.Shape) ||
		scales.Shape[last] != want.Scales.Shape[last] {
		return w, wrong(scales, "it has shape %v, but %s of %s has scales %v; download the checkpoint again",
			scales.Shape, t.Name, w.Type, want.Scales.Shape)
	}
	read := fp4Weight{codes: t, scales: scales, format: w.Type}
	if w.Type == quantize.NVFP4 {
		if err := c.globalScale(name, t, packed, &w, &read); err != nil {
			return w, err
		}
	}
	w.Read = read
	return w, nil
}

// globalScale reads the scale of the whole tensor.
func (c *Checkpoint) globalScale(name string, t safetensors.Source, packed bool, w *Weight, read *fp4Weight) error {
	key := name + ".weight_scale_2"
	if packed {
		key = name + ".weight_global_scale"
	}
	g, ok := c.Lookup(key)
	if !ok {
		return wrong(t, "it is nvfp4, but %s, its scale of the whole tensor, is missing; download the checkpoint again", key)
	}
	w.Parts = append(w.Parts, g)
	w.Format += " with a scale of the tensor"
	if g.DType != safetensors.F32 || numbers.Count(g.Shape) != 1 {
		return wrong(g, "it is %s %v, want one F32; download the checkpoint again", g.DType, g.Shape)
	}
	if c.HeadersOnly {
		c.assume(assumedGlobals)
		w.Global = float32(c.assumed[assumedGlobals] + 1)
		return nil
	}
	var b [4]byte
	if err := numbers.ReadAt(g, b[:], 0); err != nil {
		return wrong(g, "%w", err)
	}
	v := math.Float32frombits(le.Uint32(b[:]))
	if packed {
		v = 1 / v
	}
	if !(v > 0 && v <= math.MaxFloat32) {
		return wrong(g, "the tensor's scale is %v, want a positive number; download the checkpoint again",
			math.Float32frombits(le.Uint32(b[:])))
	}
	if v != 1 {
		w.Global, read.global = v, v
	}
	return nil
}

// fp4Weight reads codes and scales that have package quantize's layout.
type fp4Weight struct {
	codes, scales safetensors.Source
	format        quantize.Type
	global        float32 // 0 = none
}

// Codes implements Elements.
func (w fp4Weight) Codes(dst quantize.Blocks, begin, _ int64) error {
	if err := numbers.ReadAt(w.codes, dst.Packed, begin/2); err != nil {
		return err
	}
	return numbers.ReadAt(w.scales, dst.Scales, begin/int64(w.format.Group()))
}

// Floats implements Elements.
func (w fp4Weight) Floats(dst []byte, begin, count int64) error {
	b := quantize.Blocks{Packed: make([]byte, count/2), Scales: make([]byte, count/int64(w.format.Group()))}
	if err := w.Codes(b, begin, count); err != nil {
		return err
	}
	if err := w.format.Decode(dst, quantize.F32, b, quantize.F32); err != nil {
		return err
	}
	if w.global != 0 {
		for i := range int(count) {
			numbers.Put(dst, i, math.Float32frombits(le.Uint32(dst[4*i:]))*w.global)
		}
	}
	return nil
}
