package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

const (
	modelfileName = "Modelfile"
	jinjaName     = "chat_template.jinja"
	samplingName  = "generation_config.json"
)

// addModelfile adds a Modelfile for what a checkpoint's files cannot express. It writes the image's own chat template
// to the file that other programs read.
func (x *export) addModelfile(ctx context.Context, store *store.Store, entry *store.Entry) error {
	texts, err := ReadTexts(store, entry)
	if err != nil {
		return err
	}
	// Licenses are separate files.
	texts.Licenses = nil
	if texts.own != "" {
		if _, err := chat.Parse(ctx, texts.own); err == nil {
			x.setFile(jinjaName, []byte(texts.own))
			texts.own = ""
		}
	}
	if parser, renderer, err := x.inv.detected(); err == nil {
		if texts.Parser == parser {
			texts.Parser = ""
		}
		if texts.Renderer == renderer {
			texts.Renderer = ""
		}
	}
	x.dropRepeated(texts)
	file, notes := texts.Modelfile(".")
	for _, n := range notes {
		x.notes = append(x.notes, "omitted: "+n)
	}
	if x.draft != nil {
		draft := modelfile.Command{Name: modelfile.Draft, Value: "./" + draftFolder}
		file.Commands = slices.Insert(file.Commands, 1, draft)
	}
	if len(file.Commands) == 1 {
		return nil
	}
	text, err := file.Format()
	if err != nil {
		return fmt.Errorf("%s: %w", modelfileName, err)
	}
	x.files = append(x.files, exportFile{modelfileName, []byte(text)})
	return nil
}

// setFile adds or replaces a file.
func (x *export) setFile(name string, data []byte) {
	i := slices.IndexFunc(x.files, func(f exportFile) bool { return f.name == name })
	if i < 0 {
		x.files = append(x.files, exportFile{name, data})
		return
	}
	x.files[i].data = data
}

// detected returns the parser and the renderer that an import of the folder would detect.
func (inv *Inventory) detected() (parser, renderer string, err error) {
	fresh := *inv
	fresh.base = Record{}
	p := &Plan{}
	err = fresh.describe(p, PlanOptions{})
	return p.parser, p.renderer, err
}

// dropRepeated removes the parameters that generation_config.json also sets to the same value.
func (x *export) dropRepeated(t *Texts) {
	f, ok := x.inv.file(samplingName)
	if !ok {
		return
	}
	repeated, _ := generationParameters(f.Data)
	for name, value := range repeated {
		a, errA := json.Marshal(value)
		b, errB := json.Marshal(t.Parameters[name])
		if errA == nil && errB == nil && string(a) == string(b) {
			delete(t.Parameters, name)
		}
	}
}
