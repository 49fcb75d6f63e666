package arch

// ggufMistral4 is the mapping of mistral4, which is only imported. Files that the converter makes of published
// checkpoints in Hugging Face's layout do not say that queries grow.
var ggufMistral4 = mistral4()

func mistral4() GGUF {
	g := ggufDeepseek2
	g.Architecture, g.ImportOnly = "mistral4", true
	g.Config = map[string]any{
		"model_type": "mistral4", "architectures": []string{"Mistral4ForCausalLM"}, "q_lora_rank": nil,
	}
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		if err := adjustLatent(c, g.Architecture, f); err != nil {
			return err
		}
		scaling, ok := c["rope_scaling"].(map[string]any)
		if !ok { // unlike an absent one, which is that of the published model
			scaling = map[string]any{"rope_type": "default"}
			c["rope_scaling"] = scaling
		}
		if v, ok := f.Value(g.Architecture + ".attention.temperature_scale"); ok {
			scaling["llama_4_scaling_beta"] = v
		}
		return ggufSparse(c, f)
	}
	return g
}
