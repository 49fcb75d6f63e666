// Package chatglm runs model type "chatglm": Llama with interleaved rope of half of each head.
//
// Reference: transformers 5.23, models/glm/modeling_glm.py, and modeling_chatglm.py beside the published checkpoints.
package chatglm

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("chatglm", build) }

func build(t *mlx.Thread, c *arch.ChatGLM, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{Interleaved: true})
}
