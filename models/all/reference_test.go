package all

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/modeltest"
)

// limits has the types whose errors exceed the usual limits, or whose first two variants do not show what there is.
var limits = map[string]modeltest.Limits{
	// The recurrent state accumulates the errors of quantized weights, and the rounding of sums.
	"qwen3_5": {Logits: 5e-4, Int8: 0.025, Ranks: 1e-4, Full: []string{"default", "published"}},
	// It does here, too, and the routers are nearly undecided at some tokens.
	"qwen3_5_moe": {Int8: 0.06, Ranks: 3e-5, Full: []string{"default", "next-published"}},
	// The routers are nearly undecided at some tokens.
	"dots1":         {Int8: 0.012},
	"glm4_moe_lite": {Int8: 0.03, Full: []string{"default", "published"}},
	// Other keys are chosen where scores nearly tie.
	"deepseek_v32": {Int8: 0.1, Stored: 0.04, KV8: 0.04, KV4: 0.6},
	"deepseek_v4":  {Int8: 0.1, Stored: 0.04, KV8: 0.04, KV4: 0.6},
	"glm_moe_dsa":  {Int8: 0.1, Stored: 0.04, KV8: 0.04, KV4: 0.6},
	// Latents are so narrow that all channels share one scale.
	"kimi_linear": {KV8: 0.02},
	// Which blocks are whole depends on the position, so steps are not replayed.
	"qwen4_exp": {Unrepeated: true},
	// Its activation function has no kernel of its own, and MLX's operations are not replayed.
	"opt": {Unrepeated: true},

	"falcon_h1": {Full: []string{"published", "saved"}},
	// Residual streams are predicted from one another, which amplifies the rounding of sums.
	"gemma3n":   {Ranks: 3e-5},
	"gemma3":    {Full: []string{"published", "text-saved"}},
	"gemma4":    {Ranks: 5e-5, Full: []string{"26b-a4b", "e4b"}},
	"jamba":     {Ranks: 5e-5},
	"lfm3":      {Full: []string{"published", "saved"}},
	"llama4":    {Full: []string{"published", "saved"}}, // one and several experts for a token
	"llama":     {Full: []string{"default", "mistral"}},
	"qwen2":     {Full: []string{"published", "saved"}},
	"qwen3":     {Full: []string{"default", "window-types"}},
	"qwen3_moe": {Full: []string{"default", "window"}},
	"zamba2":    {Ranks: 5e-5},
}

// TestReference runs the checkpoints of testdata that are named after a model type. They are one test and not one for
// each model, since linking a program for each took longer than running it.
func TestReference(t *testing.T) {
	for _, name := range models.Types() {
		t.Run(name, func(t *testing.T) { modeltest.Every(t, limits[name], name+"-") })
	}
}

// TestRanks divides the models over ranks, which are threads of this process.
func TestRanks(t *testing.T) {
	for _, name := range models.Types() {
		t.Run(name, func(t *testing.T) { modeltest.EveryRanks(t, limits[name], name, false) })
	}
}

// staged are the types that pass more than a residual stream from layer to layer, or whose layers read what others
// store, and one that does neither.
var staged = []string{"deepseek_v4", "gemma3n", "gemma4", "glm_moe_dsa", "llama", "longcat_flash", "qwen4_exp", "rwkv7",
	"zamba2"}

// TestStages divides the layers of the models over ranks, which are threads of this process. In the short run these are
// a few types.
func TestStages(t *testing.T) {
	for _, name := range models.Types() {
		if !runtest.Long() && !slices.Contains(staged, name) {
			continue
		}
		t.Run(name, func(t *testing.T) { modeltest.EveryRanks(t, limits[name], name, true) })
	}
}

// TestDraft checks multi-token prediction heads.
func TestDraft(t *testing.T) {
	for _, name := range []string{
		"deepseek_v3-published", "exaone_moe-published", "glm4_moe-published", "longcat_flash-published",
		"mimo_v2_flash-published",
		"qwen3_5-published", "qwen3_5-published-tied", "qwen3_5_moe-next-published", "qwen3_5_moe-published",
	} {
		t.Run(name, func(t *testing.T) { modeltest.Draft(t, name) })
	}
	if modeltest.Load(t, "qwen3_5-default").Model.(models.Drafter).Draft() != nil {
		t.Error("qwen3_5-default has no head that drafts, and offers one")
	}
}

// TestLengths runs texts that exceed the context that a model was trained with.
func TestLengths(t *testing.T) {
	for _, name := range []string{"long-phi3", "long-phimoe", "long-qwen3-dynamic", "long-qwen3-longrope"} {
		t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Lengths(t, name) })
	}
}

// TestDemo runs the checkpoint that other tests generate text with. It is larger than the others; in the short run it
// takes the paths of requests only.
func TestDemo(t *testing.T) {
	c := modeltest.Load(t, "demo")
	if runtest.Long() {
		c.Paths(t)
		return
	}
	c.Brief(t)
}
