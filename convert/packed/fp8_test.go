package packed

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed/declared"
	"github.com/ingotml/ingot/safetensors"
)

// open writes and opens tensors; those without data are zero.
func open(t testing.TB, list []safetensors.Tensor, data map[string][]byte) []safetensors.Source {
	t.Helper()
	dir := t.TempDir()
	header, placed, err := safetensors.EncodeHeader(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := header
	for _, p := range placed {
		content := make([]byte, p.Size())
		copy(content, data[p.Name])
		file = append(file, content...)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := safetensors.OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.Tensors()
}

// Shapes and configuration determine the extent of a scale.
func TestFP8Granularity(t *testing.T) {
	const block, channel, perTensor = `{"quant_method": "fp8", "weight_block_size": [32, 64]}`,
		`{"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"strategy": "channel"}}}}`,
		`{"quant_method": "modelopt", "quant_algo": "FP8"}`
	const blocks,
		group = `{"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"strategy": "block", ` +
		`"block_structure": [128, 128]}}, "b": {"weights": {"strategy": "channel"}}}}`,
		`{"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"strategy": "group", "group_size": 32}}}}`
	for _, c := range []struct {
		config        string
		shape, scales []int64
		want          string // part of the format or the error
	}{
		{block, []int64{64, 128}, []int64{2, 2}, "blocks of 32 x 64"},
		{block, []int64{70, 130}, []int64{3, 3}, "blocks of 32 x 64"},
		{block, []int64{4, 64, 128}, []int64{4, 2, 2}, "blocks of 32 x 64"},
		{block, []int64{4, 64, 128}, []int64{2, 2}, "are [4 2 2]"},
		{block, []int64{64, 128}, []int64{1, 1}, "are [2 2]"},
		{blocks, []int64{256, 192}, []int64{2, 2}, "blocks of 128 x 128"},
		{blocks, []int64{256, 192}, []int64{256, 1}, "a scale per row"},
		{group, []int64{16, 128}, []int64{16, 4}, "blocks of 1 x 32"},
		{channel, []int64{64, 128}, []int64{64, 1}, "a scale per row"},
		{channel, []int64{64, 128}, []int64{64}, "a scale per row"},
		{channel, []int64{4, 64, 128}, []int64{4, 64, 1}, "a scale per row"},
		{channel, []int64{64, 128}, []int64{32, 1}, "matches model.w.weight [64 128] neither"},
		{perTensor, []int64{64, 128}, nil, "a scale per tensor"},
		{perTensor, []int64{64, 128}, []int64{1}, "a scale per tensor"},
		{perTensor, []int64{4, 64, 128}, []int64{1}, "a scale per tensor"},
		{perTensor, []int64{4, 64, 128}, []int64{4}, "a scale per expert"},
		{perTensor, []int64{4, 64, 128}, []int64{4, 1, 1}, "a scale per expert"},
		{"", []int64{300, 256}, []int64{3, 2}, "blocks of 128 x 128"},
		{"", []int64{64, 128}, []int64{2, 4}, "blocks of 32 x 32"},
		{"", []int64{64, 128}, []int64{3, 4}, "matches model.w.weight [64 128] neither"},
		{"", []int64{64}, []int64{1}, "want a matrix"},
		{
			`{"quant_method": "fp8", "weight_block_size": "128"}`, []int64{64, 128}, []int64{1},
			"config.json: quantization_config",
		},
		{
			`{"quant_method": "fp8", "weight_block_size": [9223372036854775807, 64]}`, []int64{64, 128}, []int64{0, 2},
			"want two positive numbers up to",
		},
		{block, []int64{64, 128}, []int64{0, 2}, "are [2 2]"},
		{"", []int64{64, 128}, []int64{0, 2}, "neither"},
		{`{"quant_method": "fp8", "weight_block_size": [128]}`, []int64{64, 128}, []int64{1}, "want two positive numbers"},
	} {
		tensors := open(t, []safetensors.Tensor{
			{Name: "model.w.weight", DType: safetensors.F8E4M3, Shape: c.shape},
			{Name: "model.w.weight_scale", DType: safetensors.F32, Shape: c.scales},
		}, nil)
		config := []byte("{}")
		if c.config != "" {
			config, _ = json.Marshal(map[string]json.RawMessage{declared.HF: json.RawMessage(c.config)})
		}
		r, err := Read(NewCheckpoint(safetensors.Dir("dir"), config, tensors))
		switch {
		case err != nil:
			if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v of %v: %v, want %s", c.scales, c.shape, err, c.want)
			}
		case len(r.Weights) != 1 || len(r.Plain) != 0 || !strings.HasSuffix(r.Weights[0].Format, ", "+c.want):
			t.Errorf("%v of %v: %+v, want %s", c.scales, c.shape, r.Weights, c.want)
		}
	}
}

// MLX's configuration is found under both keys, at the top level and in text_config.
func TestMLXKeys(t *testing.T) {
	list := []safetensors.Tensor{
		{Name: "w.biases", DType: safetensors.F16, Shape: []int64{8, 2}},
		{Name: "w.scales", DType: safetensors.F16, Shape: []int64{8, 2}},
		{Name: "w.weight", DType: safetensors.U32, Shape: []int64{8, 12}},
	}
	for _, config := range []string{
		`{"quantization": {"bits": 3, "group_size": 64}}`,
		`{"quantization_config": {"bits": 3, "group_size": 64, "mode": "affine"}}`,
		`{"quantization": {"bits": 3, "group_size": 64}, "quantization_config": {"bits": 3, "group_size": 64}}`,
		`{"text_config": {"quantization": {"bits": 3}}}`,
		`{"quantization": {"bits": 8, "w": {"bits": 3}}}`,
		`{"quantization": {"bits": 3, "w": true, "v": false}}`,
	} {
		r, err := Read(NewCheckpoint(safetensors.Dir("dir"), []byte(config), open(t, list, nil)))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if w := r.Weights; len(w) != 1 || w[0].Type.String() != "int3" || w[0].DType != safetensors.F16 ||
			w[0].Shape[1] != 128 {
			t.Errorf("%s: %+v", config, w)
		}
	}
}

// An unknown packing is an error that names it.
func TestLeftOver(t *testing.T) {
	for _, c := range []struct {
		tensor safetensors.Tensor
		config string
		want   string
	}{
		{
			safetensors.Tensor{Name: "w.weight", DType: safetensors.F4, Shape: []int64{8, 2}}, "{}",
			"tensor w.weight: cannot import: the checkpoint is quantized in an unsupported way (its type is F4)",
		},
		{safetensors.Tensor{Name: "w.qweight", DType: safetensors.I32, Shape: []int64{8, 2}}, "{}", "w.qweight"},
		{
			safetensors.Tensor{Name: "w.codes", DType: safetensors.I8, Shape: []int64{8, 2}},
			`{"quantization_config": {"quant_method": "aqlm"}}`,
			`config.json quantization_config.quant_method = "aqlm": it is packed by AQLM, which this version does not read`,
		},
		{
			safetensors.Tensor{Name: "w.codes", DType: safetensors.I8, Shape: []int64{8, 2}},
			`{"quantization_config": {"quant_method": "new"}}`,
			`quantization_config: cannot import: it declares a quantized checkpoint (quant_method "new")`,
		},
		{
			safetensors.Tensor{Name: "w.codes", DType: safetensors.U32, Shape: []int64{8, 2}}, `{"quantization": {"bits": 4}}`,
			"no tensor is packed in a way that this version supports (w.codes is U32)",
		},
	} {
		_, err := Read(NewCheckpoint(safetensors.Dir("dir"), []byte(c.config), open(t, []safetensors.Tensor{c.tensor}, nil)))
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.tensor.Name, c.config, err, c.want)
		}
	}
}
