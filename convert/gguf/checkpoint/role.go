package checkpoint

import (
	"fmt"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/safetensors"
)

// Role is what a GGUF file is, in words, if it is not a model; "" for a model.
type Role string

// Roles of files that lie beside models.
const (
	Projector     Role = "a projector for pictures or sound (mmproj)"
	LoRA          Role = "a LoRA adapter"
	Importance    Role = "an importance matrix"
	ControlVector Role = "a control vector"
)

// roleOf returns what a file with this metadata is.
func roleOf(m gguf.Metadata) Role {
	text := func(key string) string {
		s, _ := m.Text(key) // the reader of a model says what is wrong with it
		return s
	}
	kind, architecture := text("general.type"), text("general.architecture")
	switch {
	case kind == "mmproj" || kind == "clip-vision" || architecture == "clip":
		return Projector
	case kind == "adapter" || text("adapter.type") != "":
		return LoRA
	case kind == "imatrix":
		return Importance
	case architecture == "controlvector":
		return ControlVector
	}
	return ""
}

// RoleOf returns what a GGUF file of a folder is. It reads its metadata.
func RoleOf(folder safetensors.Folder, name string) (Role, error) {
	m, err := readMetadata(folder, name)
	if err != nil {
		return "", err
	}
	return roleOf(m), nil
}

// checkRole refuses a file that is no model.
func (s *set) checkRole() error {
	role := roleOf(s.files[0].header.Metadata)
	if role == "" {
		return nil
	}
	return fmt.Errorf("%w: it is %s, not a model; name the model's file", packed.ErrSource, role)
}
