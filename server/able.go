package server

import (
	"regexp"
	"slices"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/talk"
)

// thinkInTemplate finds what chat templates decide by whether a model is to think.
var thinkInTemplate = regexp.MustCompile(`\b(enable_thinking|thinking|reasoning_effort)\b|\.Think|<think>`)

// able refuses what a model's template would leave out without a word.
func (m *model) able(style *talk.Style, c *talk.Conversation) error {
	if style.Template == nil {
		if c.Think != nil && !*c.Think {
			c.Think = nil // such a model does not think anyway
		}
		return nil // talk says what else there is no place for
	}
	can := m.entry.Image.Config.Capabilities
	if len(can) == 0 { // an image of others that does not tell
		return nil
	}
	if len(c.Tools) > 0 && !slices.Contains(can, manifest.CapTools) {
		return badRequest("%s does not support tools: its chat template has no place for them", m.name())
	}
	if c.Think == nil || !*c.Think || slices.Contains(can, manifest.CapThinking) {
		return nil
	}
	if _, reads := parse.Abilities(style.Texts.Parser); !reads && !thinkInTemplate.MatchString(style.Text) {
		return badRequest("%s does not support thinking: its chat template knows nothing of it", m.name())
	}
	return nil
}
