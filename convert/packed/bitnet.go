package packed

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/safetensors"
)

// BitNet as transformers stores it: X.weight (U8 [out/4, in]) has codes of 2 bits for -1, 0 and 1. The lowest bits of
// its rows are the first quarter of the weight's rows, the next bits the second, and so on. X.weight_scale is one
// number. The class bitlinear divides by it, autobitlinear multiplies.
// https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/integrations/bitnet.py

// bitnetConfig is what quantization_config says of BitNet.
type bitnetConfig struct {
	Class string `json:"linear_class"`
	Mode  string `json:"quantization_mode"`
	Norm  bool   `json:"use_rms_norm"`
}

func findBitNet(c *Checkpoint) (Found, error) {
	var f Found
	named := strings.EqualFold(c.method(), "bitnet")
	config := bitnetConfig{Class: "bitlinear"}
	if named {
		if err := pyjson.Unmarshal(c.HF, &config); err != nil {
			return f, c.wrongConfig(c.hfKey, "%w", err)
		}
		if err := c.checkBitNet(config); err != nil {
			return f, err
		}
	}
	var list []Weight
	for _, t := range c.Tensors() {
		layer, ok := strings.CutSuffix(t.Name, ".weight")
		if !ok || t.DType != safetensors.U8 {
			continue
		}
		scale, scaled := c.Lookup(layer + ".weight_scale")
		one := scaled && isFloat(scale.DType) && numbers.Count(scale.Shape) == 1
		switch {
		case !named && one:
			return f, wrong(t, "it is packed like BitNet's weights, but config.json does not say whether %s divides or "+
				"multiplies; add quantization_config with quant_method \"bitnet\" and linear_class \"bitlinear\" or "+
				"\"autobitlinear\"", scale.Name)
		case !named:
			continue
		case !one:
			return f, wrong(t, "it holds codes of BitNet, but %s.weight_scale, one number, is missing or another; "+
				"download the checkpoint again", layer)
		}
		m, err := c.bitnetMatrix(t, scale, config.Class == "bitlinear")
		if err != nil {
			return f, err
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return f, nil
	}
	if err := c.finishWeights(list); err != nil {
		return f, err
	}
	f.Weights = list
	f.What = list[0].Format + biasNote(f.Weights)
	f.From = []string{
		fmt.Sprintf("config.json %s.quant_method = %q, linear_class = %q", c.hfKey, c.method(), config.Class),
		fmt.Sprintf("%s (U8 %v) with %s", list[0].Parts[0].Name, list[0].Parts[0].Shape, list[0].Parts[1].Name),
	}
	f.Notes = []string{"bitnet: transformers rounds activations to 8 bits while it computes; here they are not rounded"}
	return f, nil
}

// checkBitNet refuses what would change the result.
func (c *Checkpoint) checkBitNet(config bitnetConfig) error {
	switch {
	case config.Class != "bitlinear" && config.Class != "autobitlinear":
		return c.wrongConfig(c.hfKey+".linear_class", "%q is unknown, want bitlinear or autobitlinear; "+
			"correct the configuration", config.Class)
	case config.Norm:
		return c.wrongConfig(c.hfKey+".use_rms_norm", "norms within linear layers are not supported; use another model")
	case config.Class == "autobitlinear" && config.Mode == "online":
		return c.wrongConfig(c.hfKey+".quantization_mode", "\"online\" rounds the weights to -1, 0 and 1 while the model "+
			"computes, which is not supported; use the packed checkpoint of the model (offline)")
	}
	return nil
}

func (c *Checkpoint) bitnetMatrix(t, scale safetensors.Source, divides bool) (Weight, error) {
	if len(t.Shape) != 2 || numbers.Count(t.Shape) == 0 || t.Shape[1] > maxColumns {
		return Weight{}, wrong(t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
	}
	s := []float32{1}
	if !c.HeadersOnly {
		if err := numbers.Some(scale, s, 0); err != nil {
			return Weight{}, wrong(scale, "%w", err)
		}
	}
	if divides {
		s[0] = 1 / s[0]
	}
	if s[0]-s[0] != 0 {
		return Weight{}, wrong(scale, "its scale is not finite; download the checkpoint again")
	}
	columns := t.Shape[1]
	g := &grid{
		rows: 4 * t.Shape[0], columns: columns, bits: 2, order: c.consecutiveGroups(columns, columns), inOrder: columns,
		groups: 1, declared: !divides, read: bitnetReader{t, s[0]}, // without a division, the scale is as exact as it was
	}
	w := Weight{
		Name: t.Name, DType: scale.DType, Parts: []safetensors.Source{t, scale}, Format: "BitNet, one scale a matrix",
		Why: g.fit(), Read: g,
	}
	w.Plain = g.target == 0
	return w, nil
}

type bitnetReader struct {
	packed safetensors.Source
	scale  float32
}

func (b bitnetReader) codes(dst []uint8, row, rows int64) error {
	quarter, columns := b.packed.Shape[0], b.packed.Shape[1]
	for rows > 0 {
		n := min(rows, quarter-row%quarter) // rows with the same bits
		part := dst[:n*columns]
		if err := numbers.ReadAt(b.packed, part, row%quarter*columns); err != nil {
			return err
		}
		for i := range part {
			part[i] = part[i] >> (row / quarter * 2) & 3
		}
		dst, row, rows = dst[n*columns:], row+n, rows-n
	}
	return nil
}

func (b bitnetReader) params(scales, zeros []float32, _, _ int64) error {
	for i := range scales {
		scales[i], zeros[i] = b.scale, 1
	}
	return nil
}
