package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
)

const (
	modelfileName = "Modelfile"
	jinjaName     = "chat_template.jinja"
	sampledName   = "generation_config.json"
)

// addModelfile adds a Modelfile where the image says what the files of a checkpoint cannot, and puts a chat template of its own
// where other programs look for one.
func (x *export) addModelfile(ctx context.Context, store *manifest.Store, entry *manifest.Entry) error {
	texts, err := ReadTexts(store, entry)
	if err != nil {
		return err
	}
	// Licences are files of their own.
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
	x.sampled(texts)
	file, notes := texts.Modelfile(".")
	for _, n := range notes {
		x.notes = append(x.notes, "left out: "+n)
	}
	if x.draft != nil {
		file.Commands = slices.Insert(file.Commands, 1, modelfile.Command{Name: modelfile.Draft, Value: "./" + draftFolder})
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

// setFile replaces a file, or adds it.
func (x *export) setFile(name string, data []byte) {
	i := slices.IndexFunc(x.files, func(f exportFile) bool { return f.name == name })
	if i < 0 {
		x.files = append(x.files, exportFile{name, data})
		return
	}
	x.files[i].data = data
}

// detected is what an import of the folder finds out about prompts and answers.
func (inv *Inventory) detected() (parser, renderer string, err error) {
	fresh := *inv
	fresh.base = Record{}
	p := &Plan{}
	err = fresh.describe(p, PlanOptions{})
	return p.parser, p.renderer, err
}

// sampled keeps those parameters that generation_config.json does not say.
func (x *export) sampled(t *Texts) {
	f, ok := x.inv.file(sampledName)
	if !ok {
		return
	}
	said, _ := generationParameters(f.Data)
	for name, value := range said {
		a, errA := json.Marshal(value)
		b, errB := json.Marshal(t.Parameters[name])
		if errA == nil && errB == nil && string(a) == string(b) {
			delete(t.Parameters, name)
		}
	}
}
