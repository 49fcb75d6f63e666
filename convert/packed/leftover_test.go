package packed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/safetensors"
)

// A configuration that a merge left behind gives way to plain tensors, with a note, wherever it is and whatever it
// says.
func TestLeftBehind(t *testing.T) {
	plain := []safetensors.Tensor{
		{Name: "a.weight", DType: safetensors.BF16, Shape: []int64{8, 2}},
		{Name: "b.weight", DType: safetensors.F16, Shape: []int64{8, 2}},
		{Name: "c.scale", DType: safetensors.F32, Shape: []int64{8}},
		{Name: "d.table", DType: safetensors.I64, Shape: []int64{8}},
	}
	for _, q := range []string{
		`{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}`,
		`{"quant_method": "bitsandbytes", "load_in_8bit": true}`,
		`{"quant_method": "fp8", "weight_block_size": [128, 128]}`,
		`{"quant_method": "mxfp4"}`,
		`{"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true}`,
		`{"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"}`,
		`{"quant_method": "auto-round", "packing_format": "auto_round", "bits": 4}`,
		`{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}}`,
		`{"quant_method": "modelopt", "quant_algo": "NVFP4"}`,
		`{"quant_method": "hqq"}`,
		`{"quant_method": "unheard-of"}`,
		`{"group_size": 64, "bits": 4}`, // MLX's
		`{"group_size": 32, "bits": 4, "mode": "mxfp4"}`,
	} {
		for _, config := range []string{
			`{"quantization_config": %s}`, `{"text_config": {"quantization_config": %s}}`, `{"compression_config": %s}`,
			`{"quantization": %s}`,
		} {
			if strings.Contains(config, `"quantization"`) && strings.Contains(q, "quant_method") {
				continue // only MLX's is under this key
			}
			config = fmt.Sprintf(config, q)
			r, err := Read(NewCheckpoint(safetensors.Dir("dir"), []byte(config), open(t, plain, nil)))
			if err != nil || len(r.Plain) != len(plain) || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "is ignored") {
				t.Errorf("%s: %d plain tensors, notes %q, %v", config, len(r.Plain), r.Notes, err)
			}
		}
	}
	r, err := Read(NewCheckpoint(safetensors.Dir("dir"), []byte(`{}`), open(t, plain, nil)))
	if err != nil || r.Notes != nil {
		t.Errorf("without a configuration: notes %q, %v", r.Notes, err)
	}
}
