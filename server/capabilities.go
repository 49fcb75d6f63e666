package server

import (
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server/wire"
)

// checkCapabilities rejects conversations with a model that only computes embeddings, and tools that the model's
// template would silently ignore. Thinking is a hint.
func (m *Model) checkCapabilities(style *prompt.Style, c *prompt.Conversation) error {
	if err := m.CheckHead(); err != nil {
		return err
	}
	if !style.HasTemplate() {
		return nil // package prompt rejects everything else that needs a template
	}
	can := m.Entry.Image.Config.Capabilities
	if len(can) == 0 { // another tool's image, which does not list capabilities
		return nil
	}
	if len(c.Tools) > 0 && !slices.Contains(can, manifest.CapTools) {
		return wire.BadRequest("%s does not support tools: its chat template does not use them", m.Name())
	}
	return nil
}
