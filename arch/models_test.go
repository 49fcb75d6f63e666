package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/safetensors"
)

// TestFixtures checks every checkpoint of testdata/models against its table, and requires a golden for each.
func TestFixtures(t *testing.T) {
	configs, err := filepath.Glob("../testdata/models/*/config.json")
	if err != nil || len(configs) == 0 {
		t.Fatalf("no checkpoints (%v)", err)
	}
	for _, config := range configs {
		dir := filepath.Dir(config)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("../testdata/reference", filepath.Base(dir)+".safetensors")); err != nil {
				t.Error(err)
			}
			data, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			m, err := arch.Detect(data)
			if err != nil {
				t.Fatal(err)
			}
			ckpt, err := safetensors.OpenCheckpoint(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer ckpt.Close()
			var have []table.TensorInfo
			for _, s := range ckpt.Tensors() {
				have = append(have, table.TensorInfo{Name: s.Name, DType: string(s.DType), Shape: s.Shape})
			}
			have = unpackedBlocks(have)
			if _, err := m.Table().Check(have); err != nil {
				t.Error(err)
			}
		})
	}
}

// unpackedBlocks describes blocks and scales of mxfp4 as package packed does: as one tensor in bf16.
func unpackedBlocks(have []table.TensorInfo) []table.TensorInfo {
	var out []table.TensorInfo
	for _, h := range have {
		base, isScales := strings.CutSuffix(h.Name, "_scales")
		if isScales && slices.ContainsFunc(have, func(b table.TensorInfo) bool { return b.Name == base+"_blocks" }) {
			continue
		}
		if n := len(h.Shape) - 1; strings.HasSuffix(h.Name, "_blocks") {
			h.DType, h.Shape = "BF16", append(slices.Clone(h.Shape[:n-1]), h.Shape[n-1]*h.Shape[n]*2)
		}
		out = append(out, h)
	}
	return out
}
