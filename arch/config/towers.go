package config

import (
	"github.com/ingotml/ingot/arch/table"
)

// DropTowers drops the vision and audio towers of models whose towers are not supported.
func DropTowers(t *table.Table, modelType string) {
	for _, name := range []string{
		"vision_tower", "vision_model", "multi_modal_projector", "embed_vision", "vision_embedder", "visual", "mm_projector",
	} {
		t.LeaveOut(name, "pictures are not supported for "+modelType+", its text model is imported",
			"model."+name+".*", name+".*")
	}
	for _, name := range []string{"audio_tower", "embed_audio"} {
		t.LeaveOut(name, "sound is not supported, the text model is imported", "model."+name+".*", name+".*")
	}
}
