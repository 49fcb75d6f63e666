// Package all registers every model type, for programs that run arbitrary images.
package all

import (
	_ "github.com/ingotml/ingot/models/gemma"
	_ "github.com/ingotml/ingot/models/gemma2"
	_ "github.com/ingotml/ingot/models/gemma3"
	_ "github.com/ingotml/ingot/models/gemma4"
	_ "github.com/ingotml/ingot/models/gemma4_assistant"
	_ "github.com/ingotml/ingot/models/glm4_moe_lite"
	_ "github.com/ingotml/ingot/models/granite"
	_ "github.com/ingotml/ingot/models/llama"
	_ "github.com/ingotml/ingot/models/olmo2"
	_ "github.com/ingotml/ingot/models/olmo3"
	_ "github.com/ingotml/ingot/models/phi3"
	_ "github.com/ingotml/ingot/models/qwen2"
	_ "github.com/ingotml/ingot/models/qwen3"
	_ "github.com/ingotml/ingot/models/qwen3_5"
	_ "github.com/ingotml/ingot/models/qwen3_5_moe"
	_ "github.com/ingotml/ingot/models/qwen3_moe"
	_ "github.com/ingotml/ingot/models/smollm3"
)
