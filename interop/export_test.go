package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestExport: mlx-lm loads a quantized export and computes the dequantized weights' logits; calibrated and equalized
// weights too. transformers loads a plain or dequantized export with equal logits. This is the long form:
// setup.sh --full installs both.
func TestExport(t *testing.T) {
	if testing.Short() {
		t.Skip("needs mlx-lm and transformers, which setup.sh installs with --full only")
	}
	for _, c := range []struct {
		model string
		flags []string
	}{
		{"llama-default", []string{"-q", "int4"}},
		{"llama-default", []string{"-q", "nvfp4", "--uniform"}},
		{"llama-tied", []string{"-q", "int4-g32", "--quantize-rule", "*.o_proj.weight=int3-g32",
			"--quantize-rule", "*.up_proj.weight=mxfp8", "--quantize-rule", "*.embed_tokens.weight=int6-g32"}},
		{"qwen3_moe-published", []string{"-q", "int8-g32"}},
		{"gemma3-published", []string{"-q", "int8-g32"}},
		{"gemma4-26b-a4b", []string{"-q", "int4-g32"}},
		{"qwen3_5-published", []string{"-q", "int8-g32"}},
		{"qwen3_5_moe-published", []string{"-q", "mxfp8"}},
	} {
		t.Run(c.model+" "+c.flags[1], func(t *testing.T) {
			u := newUser(t)
			u.create("m", c.model, c.flags...)
			packed, plain := filepath.Join(u.home, "packed"), filepath.Join(u.home, "plain")
			u.ingot("export", "m", packed)
			u.ingot("export", "m", plain, "--dequantize", "f32")
			script(t, u, "mlx_scores.py", packed, plain)
		})
	}
	t.Run("calibrated", func(t *testing.T) {
		u := newUser(t)
		u.create("m", "demo")
		u.ingot("calibrate", "m", "--full", "--tokens", "2048")
		for _, of := range []string{"int4", "int3-g32", "nvfp4"} {
			u.ingot("quantize", "m", "m:"+of, of, "--calibration", "auto", "--equalize="+fmt.Sprint(of != "int4"),
				"--quantize-rule", "*.o_proj.weight=mxfp4")
			packed, plain := filepath.Join(u.home, of), filepath.Join(u.home, of+"-plain")
			u.ingot("export", "m:"+of, packed)
			u.ingot("export", "m:"+of, plain, "--dequantize", "f32")
			script(t, u, "mlx_scores.py", packed, plain)
		}
	})
	for _, model := range []string{"llama-default", "qwen3_moe-published", "qwen3_5_moe-published",
		"gemma3-text-published", "glm4_moe_lite-default"} {
		t.Run(model+" plain", func(t *testing.T) {
			u := newUser(t)
			u.create("m", model)
			dir := filepath.Join(u.home, "out")
			u.ingot("export", "m", dir)
			transformers(t, checkpoint(t, model), dir)
		})
	}
}

// script runs a Python script of this folder in the environment with mlx-lm.
func script(t *testing.T, u *user, name string, args ...string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(cache, "ingot", "bench-venv", "bin", "python")
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, err := u.try("", python, append([]string{path}, args...)...); err != nil {
		t.Errorf("%s: %v (interop/setup.sh --full makes the environment)\n%s%s", name, err, out, errs)
	}
}
