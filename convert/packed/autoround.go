package packed

import "strings"

// AutoRound stores layers as AutoGPTQ or AutoAWQ do. quantization_config.packing_format says which, and whether zero
// points are stored minus 1: "auto_round:auto_gptq" does so, "auto_round" and "auto_round:gptqmodel" store them
// unchanged. Early releases name the packing in "backend", for instance "autoround:exllamav2" for the unchanged one.
// Codes of 5 and 6 bits cross words as those of 3 bits do. extra_config names layers with their own bits, which follow
// from their shapes.
// https://github.com/intel/auto-round/blob/v0.16.1/auto_round/inference/backend.py
// https://github.com/intel/auto-round/blob/v0.16.1/auto_round/export/export_to_autoround/export.py

// isAutoRound reports whether AutoRound wrote the checkpoint in a form of its own.
func (t gptqConfig) isAutoRound() bool {
	return strings.HasSuffix(strings.ReplaceAll(strings.ToLower(t.Method), "_", "-"), "auto-round")
}

// packing returns the name of AutoRound's packing, "" if the configuration has none.
func (t gptqConfig) packing() string {
	name := strings.ToLower(t.Packing)
	if name == "" {
		name = strings.ToLower(t.Backend)
	}
	if name == "auto" {
		return ""
	}
	return name
}

// zeroShift returns what has to be added to stored zero points of GPTQ's layout.
func (t gptqConfig) zeroShift(c *Checkpoint) (uint32, error) {
	if !t.isAutoRound() {
		if t.format() == "gptq_v2" {
			return 0, nil
		}
		return 1, nil
	}
	name := t.packing()
	_, variant, _ := strings.Cut(name, ":")
	switch {
	case strings.Contains(variant, "gptqmodel"), variant == "gptq_v2":
		return 0, nil
	case name == "", strings.Contains(variant, "gptq"),
		strings.HasPrefix(name, "gptq"), strings.HasPrefix(name, "auto_gptq"):
		return 1, nil
	case strings.Contains(variant, "awq"):
		return 0, c.wrongConfig(t.key, "packing_format is %q, but the tensors have GPTQ's layout; "+
			"correct the configuration", name)
	case strings.HasPrefix(name, "auto_round"), strings.HasPrefix(name, "autoround"):
		return 0, nil
	}
	return 0, c.wrongConfig(t.key, "the packing_format %q is unknown; want auto_round, auto_round:gptqmodel, "+
		"auto_round:auto_gptq or auto_round:auto_awq", name)
}
