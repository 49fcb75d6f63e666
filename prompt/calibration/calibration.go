// Package calibration makes the text that a calibration reads: dialogues in it have the model's chat template.
package calibration

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/calibrate"
)

// Documents returns the documents of texts, or without any those of the built-in text.
func Documents(
	ctx context.Context, st *store.Store, entry *store.Entry, texts []string,
) ([][]calibrate.Document, error) {
	if len(texts) > 0 {
		return calibrate.Files(texts), nil
	}
	read, err := settings.Read(st, entry)
	if err != nil {
		return nil, err
	}
	if read.Templates.Empty() {
		return calibrate.Builtin(ctx, nil)
	}
	chosen, err := read.Templates.Choose(ctx, chat.Request{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	}
	return calibrate.Builtin(ctx, func(ctx context.Context, list []calibrate.Message) (string, error) {
		var messages []chat.Message
		for _, m := range list {
			messages = append(messages, chat.Message{Role: m.Role, Content: m.Content})
		}
		return chosen.Template.Render(ctx, chat.Request{Messages: messages})
	})
}
