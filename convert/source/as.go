package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	_ "github.com/ingotml/ingot/arch/types" // registers every model type
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// detect parses config.json, as the type that the options ask for. If that is not the declared one, the image's
// config.json will declare it.
func (src *Source) detect() (err error) {
	i := slices.IndexFunc(src.Files, func(f File) bool { return f.Name == ConfigName })
	f := &src.Files[i]
	if src.options.As == "" {
		if src.Model, err = arch.Detect(f.Data); err == nil {
			src.unread = arch.Unread(f.Data)
		}
		return err
	}
	if src.retyped, err = arch.DetectAs(f.Data, src.options.As); err != nil {
		return err
	}
	src.Model, src.published = src.retyped.Model, f.Data
	f.Data, f.Size = src.retyped.Config, int64(len(src.retyped.Config))
	return nil
}

// Published returns the config.json that the source has, if it is read as another type than that declares; else nil.
func (src *Source) Published() []byte {
	if src.retyped.Declared == "" {
		return nil
	}
	return src.published
}

// Retyped returns the evidence and the warnings of reading the source as another type than it declares.
func (src *Source) Retyped() (found []packed.Recognized, warnings []string) {
	r, as := src.retyped, src.options.As
	if r.Declared == "" {
		return nil, nil
	}
	found = append(found, packed.Recognized{
		Kind: "type", What: "read as " + as, From: []string{ConfigName + ": " + r.Declared}, Tensors: len(src.tensors),
	})
	if r.Known {
		warnings = append(warnings, fmt.Sprintf("%s declares %s, which is a known type; it is imported as %s",
			ConfigName, r.Declared, as))
	} else {
		warnings = append(warnings, fmt.Sprintf("%s declares %s; it is imported as %s, whose tensors it has, but it may "+
			"compute differently: compare its logits with its own code's (`ingot verify --reference`)",
			ConfigName, r.Declared, as))
	}
	if len(r.Unread) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s models have no use for these keys of %s: %s; if they change the "+
			"computation, the model computes something else", as, ConfigName,
			clip.Line(strings.Join(r.Unread, ", "), maxUnread)))
	}
	return found, warnings
}

// maxUnread bounds the list of keys in a warning, in characters.
const maxUnread = 400

// unreadNote names keys of config.json that its type does not read.
func (src *Source) unreadNote() []string {
	if len(src.unread) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s models do not read these keys of %s, which are not known to be without influence: %s",
		src.Model.Facts().ModelType, ConfigName, clip.Line(strings.Join(src.unread, ", "), maxUnread))}
}
