package arch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
)

// A checkpoint of a text model with its tower has the same text model, nested or not, and no vision capability.
func TestTowersAreLeftOut(t *testing.T) {
	for _, c := range []struct{ checkpoint, modelType, class, layers, head, tower string }{
		{"qwen3", "qwen3_vl", "Qwen3VLForConditionalGeneration", "model.language_model.", "", "model.visual.blocks.0.x"},
		{"qwen3_moe", "qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "model.language_model.", "", "model.visual.x"},
		{"qwen2", "qwen2_vl", "Qwen2VLForConditionalGeneration", "model.", "", "visual.merger.x"},
		{"qwen2", "qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "model.", "", "visual.x"},
		{"qwen2", "qwen2_audio", "Qwen2AudioForConditionalGeneration", "language_model.model.", "language_model.",
			"audio_tower.conv1.weight"},
		{"lfm2", "lfm2_vl", "Lfm2VlForConditionalGeneration", "model.language_model.", "", "model.vision_tower.x"},
		{"glm4", "glm4v", "Glm4vForConditionalGeneration", "model.language_model.", "", "model.visual.x"},
		{"deepseek_v3", "kimi_k25", "KimiK25ForConditionalGeneration", "language_model.model.", "language_model.",
			"mm_projector.proj.0.weight"},
	} {
		i := slices.IndexFunc(checkpoints(t), func(x checkpoint) bool { return x.Name == c.checkpoint })
		if i < 0 {
			t.Fatalf("no checkpoint %s", c.checkpoint)
		}
		plain := checkpoints(t)[i]
		text := setKey(t, plain.Config, []string{"architectures"}, "-")
		top := `{"model_type":"` + c.modelType + `","architectures":["` + c.class + `"],"vision_config":{"depth":1},` +
			`"text_config":` + string(text) + `}`
		m, err := arch.Detect([]byte(top))
		if err != nil {
			t.Errorf("%s: %v", c.modelType, err)
			continue
		}
		have := []table.TensorInfo{{Name: c.tower, DType: "BF16", Shape: []int64{3}}}
		for _, x := range plain.have(t) {
			if rest, ok := strings.CutPrefix(x.Name, "model."); ok {
				x.Name = c.layers + rest
			} else {
				x.Name = c.head + x.Name
			}
			have = append(have, x)
		}
		match, err := m.Table().Check(have)
		if err != nil {
			t.Errorf("%s: %v", c.modelType, err)
			continue
		}
		isTower := func(d table.Dropped) bool { return d.Name == c.tower && d.Reason != "" }
		if !slices.ContainsFunc(match.Dropped, isTower) {
			t.Errorf("%s: dropped %v, want %s", c.modelType, match.Dropped, c.tower)
		}
		if want := plain.detect(t).Facts().Params; m.Facts().Params != want {
			t.Errorf("%s: %d parameters, want %d", c.modelType, m.Facts().Params, want)
		}
		d, err := arch.DetectFamily([]byte(top))
		if err != nil || slices.Contains(d.Capabilities, arch.CapVision) {
			t.Errorf("%s: capabilities %v, %v", c.modelType, d.Capabilities, err)
		}
	}
	// Their relatives, whose tower is imported, keep the capability.
	d, err := arch.DetectFamily([]byte(`{"model_type":"qwen3_5","vision_config":{"depth":1}}`))
	if err != nil || !slices.Contains(d.Capabilities, arch.CapVision) {
		t.Errorf("qwen3_5: %v, %v", d.Capabilities, err)
	}
}
