package packed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Weights of 8-bit floats are multiplied by a scale: one per tensor, per row, or per block. transformers' FP8
// (DeepSeek's) names it X.weight_scale_inv and sets weight_block_size; compressed-tensors (float-quantized) and
// ModelOpt name it X.weight_scale. Experts may be stacked: X and X_scale_inv [experts, ...].
// https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/integrations/finegrained_fp8.py
// https://github.com/vllm-project/compressed-tensors/blob/main/src/compressed_tensors/quantization/quant_args.py
//
// mxfp8 has the same codes, with a power-of-two scale per 32 elements of a row. It represents these weights exactly if
// their scales are powers of two.

// fp8Config is the configuration of FP8 weights.
type fp8Config struct {
	blocks  [][2]int64 // possible block sizes, rows first
	strict  bool       // every scale belongs to such a block
	bytes   bool       // scales of type U8 are powers of two
	from    []string   // the keys that define all this
	sizeKey string     // the key of the block size
	stated  bool       // the configuration states the scales' granularity, though perhaps not as blocks
	err     error      // the configuration is invalid; only an error if there are such weights
}

func findFP8(c *Checkpoint) (Found, error) {
	var f Found
	config, err := c.readFP8()
	if err != nil {
		return f, err
	}
	formats := map[string]int{}
	for _, t := range c.Tensors() {
		if numbers.FP8[t.DType] == nil || isScale(t.Name) {
			continue
		}
		w, err := config.weight(c, t)
		if err != nil {
			return f, err
		}
		formats[w.Format]++
		f.Weights = append(f.Weights, w)
	}
	if len(f.Weights) == 0 {
		return f, nil
	}
	var what []string
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		what = append(what, fmt.Sprintf("%s (%d)", format, formats[format]))
	}
	first := f.Weights[0].Parts
	f.What = strings.Join(what, ", ")
	f.From = append(config.from, fmt.Sprintf("%s (%s %v) with %s (%s %v)",
		first[0].Name, first[0].DType, first[0].Shape, first[1].Name, first[1].DType, first[1].Shape))
	f.Ignored = c.activationScales()
	return f, nil
}

// scaleSuffixes are the suffixes of scales, after the weight's name, in order of preference.
var scaleSuffixes = []string{"_scale_inv", "_scale"}

func isScale(name string) bool {
	return strings.HasSuffix(name, "_scale_inv") || strings.HasSuffix(name, "_scale") ||
		strings.HasSuffix(name, ".scale") || strings.HasSuffix(name, ".scales")
}

// activationScales returns the unclaimed scales of activations, keys and values. The engine needs none of them.
func (c *Checkpoint) activationScales() []Ignored {
	var out []Ignored
	for _, t := range c.Tensors() {
		if slices.ContainsFunc(activationSuffixes, func(s string) bool { return strings.HasSuffix(t.Name, s) }) {
			out = append(out, Ignored{Source: t, Reason: "a scale of activations, which are not quantized here"})
		}
	}
	return out
}

var activationSuffixes = []string{
	".input_scale", ".input_global_scale", ".activation_scale", ".input_scale_ub", ".output_scale",
	"_input_scale", "_activation_scale",
	".k_scale", ".v_scale", ".q_scale", ".kv_scale", ".prob_output_scale", ".input_zero_point",
}

// maxBlock bounds the rows and columns of a block.
const maxBlock = 1 << 30

// readFP8 reads the configuration.
func (c *Checkpoint) readFP8() (fp8Config, error) {
	type args struct {
		Strategy string  `json:"strategy"`
		Block    []int64 `json:"block_structure"`
		Group    int64   `json:"group_size"`
	}
	var q struct {
		Method string  `json:"quant_method"`
		Format string  `json:"format"`
		Algo   string  `json:"quant_algo"`
		Block  []int64 `json:"weight_block_size"`
		Scales string  `json:"scale_fmt"`
		Groups map[string]struct {
			Weights *args `json:"weights"`
		} `json:"config_groups"`
	}
	var f fp8Config
	if c.HF == nil {
		return f, nil
	}
	if err := pyjson.Unmarshal(c.HF, &q); err != nil {
		f.err = c.wrongConfig(c.hfKey, "%v", err)
		return f, nil
	}
	say := func(key string, value any) {
		f.from = append(f.from, fmt.Sprintf("config.json %s.%s = %v", c.hfKey, key, value))
	}
	for _, k := range []struct{ key, value string }{
		{"quant_method", q.Method}, {"format", q.Format}, {"quant_algo", q.Algo}, {"scale_fmt", q.Scales},
	} {
		if k.value != "" {
			say(k.key, fmt.Sprintf("%q", k.value))
		}
	}
	f.bytes = q.Scales == "ue8m0"
	block := func(key string, size []int64) error {
		if len(size) != 2 || min(size[0], size[1]) <= 0 || max(size[0], size[1]) > maxBlock {
			return c.wrongConfig(c.hfKey+"."+key,
				"%v: want two positive numbers up to %d, the rows and columns of a block", size, maxBlock)
		}
		f.blocks, f.sizeKey = append(f.blocks, [2]int64{size[0], size[1]}), c.hfKey+"."+key
		say(key, size)
		return nil
	}
	if q.Block != nil {
		f.strict = true
		return f, block("weight_block_size", q.Block)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Groups)) {
		w := q.Groups[name].Weights
		if w == nil {
			continue
		}
		key := "config_groups." + name + ".weights."
		if w.Strategy != "" {
			f.stated = true
			say(key+"strategy", fmt.Sprintf("%q", w.Strategy))
		}
		switch {
		case w.Block != nil:
			if err := block(key+"block_structure", w.Block); err != nil {
				return f, err
			}
		case w.Strategy == "group" && w.Group > 0:
			if err := block(key+"group_size", []int64{1, w.Group}); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// weight reads a weight's headers, and its scales up to the first one that is not a power of two.
func (f fp8Config) weight(c *Checkpoint, t safetensors.Source) (Weight, error) {
	if f.err != nil {
		return Weight{}, f.err
	}
	scale, err := f.scaleOf(c, t)
	if err != nil {
		return Weight{}, err
	}
	if len(t.Shape) != 2 && len(t.Shape) != 3 || numbers.Count(t.Shape) == 0 {
		return Weight{}, wrong(t, "it is %s %v, want a matrix or a stack of matrices; %s", t.DType, t.Shape, usePlain)
	}
	e := fp8Weight{codes: t, scales: scale, table: numbers.FP8[t.DType]}
	if err := e.findBlocks(f); err != nil {
		return Weight{}, err
	}
	format := map[safetensors.DType]string{safetensors.F8E4M3: "e4m3", safetensors.F8E5M2: "e5m2"}[t.DType]
	w := Weight{
		Name: t.Name, Shape: t.Shape, DType: safetensors.BF16, Parts: []safetensors.Source{t, scale}, Plain: true,
		Format: "fp8 " + format + ", " + e.granularity(), Read: e,
	}
	switch {
	case t.DType != safetensors.F8E4M3:
		w.Why = "no format here has such codes"
	case e.in%32 != 0 || e.bw%32 != 0 && e.bw < e.in:
		w.Why = "mxfp8 has a scale for each 32 elements of a row, which its blocks cross"
	case c.HeadersOnly:
		if powers := isPower(scale.DType) || f.bytes; !powers {
			c.assume(assumedPowers)
			w.Why = "its scales are no powers of two, which those of mxfp8 are"
			break
		}
		w.Type = quantize.MXFP8
	default:
		if w.Why, err = e.scaleObstacle(); err != nil {
			return Weight{}, err
		}
		if w.Why == "" {
			w.Type = quantize.MXFP8
		}
	}
	return w, nil
}

// isPower reports whether scales of a type are powers of two (E8M0): beside 8-bit floats, bytes are nothing else.
func isPower(d safetensors.DType) bool { return d == safetensors.F8E8M0 || d == safetensors.U8 }

// scaleOf finds a weight's scale.
func (f fp8Config) scaleOf(c *Checkpoint, t safetensors.Source) (safetensors.Source, error) {
	var names []string
	for _, suffix := range scaleSuffixes {
		names = append(names, t.Name+suffix)
	}
	if base, ok := strings.CutSuffix(t.Name, ".weight"); ok {
		names = append(names, base+".scale", base+".qscale_weight")
	}
	for _, name := range names {
		s, ok := c.Lookup(name)
		if !ok {
			continue
		}
		power := isPower(s.DType)
		if !power && s.DType != safetensors.F32 && s.DType != safetensors.BF16 && s.DType != safetensors.F16 {
			return s, wrong(s, "it is the scale of an 8-bit float weight and has type %s, want F32, BF16, F16 or F8_E8M0",
				s.DType)
		}
		return s, nil
	}
	return t, wrong(t, "it is %s, and its scale is missing (%s or %s); download the checkpoint again, or %s",
		t.DType, names[0], names[1], usePlain)
}
