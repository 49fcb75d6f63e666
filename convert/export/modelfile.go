package export

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

const (
	modelfileName = "Modelfile"
	jinjaName     = "chat_template.jinja"
)

// addModelfile adds a Modelfile for what a checkpoint's files cannot express. It writes the image's own chat template
// to the file that other programs read.
func (x *folder) addModelfile(ctx context.Context, store *store.Store, entry *store.Entry) error {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return err
	}
	// Licenses are separate files.
	texts.Licenses = nil
	if texts.Own != "" {
		if _, err := chat.Parse(ctx, texts.Own); err == nil {
			x.setTemplate(texts.Own)
			texts.Own = ""
		}
	}
	if parser, renderer, err := plan.Detect(x.src); err == nil {
		if texts.Parser == parser {
			texts.Parser = ""
		}
		if texts.Renderer == renderer {
			texts.Renderer = ""
		}
	}
	x.dropRepeated(texts)
	lines, notes := texts.Modelfile(".")
	for _, n := range notes {
		x.notes = append(x.notes, "omitted: "+n)
	}
	if x.draft != nil {
		draft := modelfile.Command{Name: modelfile.Draft, Value: "./" + draftFolder}
		lines.Commands = slices.Insert(lines.Commands, 1, draft)
	}
	if len(lines.Commands) == 1 {
		return nil
	}
	text, err := lines.Format()
	if err != nil {
		return fmt.Errorf("%s: %w", modelfileName, err)
	}
	x.files = append(x.files, file{modelfileName, []byte(text)})
	return nil
}

// setTemplate makes a text the only chat template of the folder: named ones would be chosen before it.
func (x *folder) setTemplate(text string) {
	x.files = slices.DeleteFunc(x.files, func(f file) bool {
		named := strings.HasPrefix(f.name, chat.AdditionalDir+"/") && chat.HoldsTemplate(f.name)
		if named {
			x.notes = append(x.notes, fmt.Sprintf("omitted: %s: the TEMPLATE line replaces it", f.name))
		}
		return named || f.name == jinjaName
	})
	x.files = append(x.files, file{jinjaName, []byte(text)})
}

// dropRepeated removes the parameters that generation_config.json also sets to the same value.
func (x *folder) dropRepeated(t *settings.Texts) {
	f, ok := x.src.File(settings.GenerationName)
	if !ok {
		return
	}
	repeated, _ := settings.GenerationParameters(f.Data)
	for name, value := range repeated {
		a, errA := json.Marshal(value)
		b, errB := json.Marshal(t.Parameters[name])
		if errA == nil && errB == nil && string(a) == string(b) {
			delete(t.Parameters, name)
		}
	}
}
