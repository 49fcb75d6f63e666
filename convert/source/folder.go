package source

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/packed/declared"
	"github.com/ingotml/ingot/safetensors"
)

// Open reads a local checkpoint folder; see [OpenFolder].
func Open(dir string, o Options) (*Source, error) {
	return OpenFolder(safetensors.Local(dir, o.AnyLinks), o)
}

// OpenFolder reads a checkpoint folder: its configuration, the headers of its weights, and its other files; or its only
// GGUF model if it has no safetensors, or the one that the user named. The caller must close the result, which closes
// the folder.
func OpenFolder(folder safetensors.Folder, o Options) (*Source, error) {
	src := &Source{From: folder.Path("."), folder: folder, options: o}
	return src.opened(src.openFolder())
}

// opened returns the source, or closes it after an error.
func (src *Source) opened(err error) (*Source, error) {
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	return src, nil
}

func (src *Source) openFolder() error {
	entries, err := src.folder.ReadDir(".")
	if err != nil {
		return err
	}
	if wanted := Wanted(src.folder); wanted != "" {
		return src.openWanted(wanted, entries)
	}
	if src.Files, err = readFiles(src.folder, entries); err != nil {
		return err
	}
	config, ok := src.File(ConfigName)
	if !ok {
		if found, err := src.ggufIn(entries); found {
			return err
		}
		return fmt.Errorf("%s: %w: no %s%s", src.From, ErrSource, ConfigName, layoutHint(entries))
	}
	errModel := src.detect()
	src.checkpoint, err = safetensors.OpenFolder(src.folder)
	if errors.Is(err, safetensors.ErrNoWeights) {
		if found, err := src.ggufIn(entries); found {
			return err
		}
	}
	// An unknown architecture is the better news where there are no weights either.
	if errModel != nil {
		return src.Located(src.nearest(errModel, config.Data))
	}
	if err == nil {
		err = src.checkCount()
	}
	if err != nil {
		return err
	}
	return src.readTensors(config.Data)
}

// checkCount refuses many more tensors than the model can have, before lists of them are made. A quantized weight has
// up to eight parts. Other parts of a model, such as towers, have some thousand tensors.
func (src *Source) checkCount() error {
	const parts, others = 8, 20_000
	have, most := int64(len(src.checkpoint.Tensors())), parts*src.Model.Table().MostTensors()+others
	if have <= most {
		return nil
	}
	return fmt.Errorf("%s: %w: the weights have %d tensors, and a model of this configuration at most %d; is %s that of "+
		"another model?", src.From, ErrSource, have, most, ConfigName)
}

// mostCompared bounds the tensors that are compared with those of known architectures.
const mostCompared = 1 << 17

// nearest adds to the error of an unknown architecture which known one its tensors are like. Weights that cannot be
// read, or in an unknown packing, add nothing.
func (src *Source) nearest(err error, config []byte) error {
	if !errors.Is(err, arch.ErrUnknownArchitecture) || src.checkpoint == nil ||
		len(src.checkpoint.Tensors()) > mostCompared {
		return err
	}
	found, errRead := src.read(config, src.checkpoint.Tensors())
	if errRead != nil {
		return err
	}
	have := infosOf(tensorsOf(src.folder, found))
	for i := range have {
		have[i].File = ""
	}
	if near := arch.Nearest(config, have); near != "" {
		return fmt.Errorf("%w; %s", err, near)
	}
	return fmt.Errorf("%w; no known type has tensors like its", err)
}

// readTensors lists the weights, those of a quantized checkpoint under the names that they have in a plain one. It
// removes the quantization settings from config.json, because in an image each blob describes its own type.
func (src *Source) readTensors(config []byte) error {
	found, err := src.readIndexed(config)
	if err != nil {
		return err
	}
	for _, s := range src.checkpoint.Unindexed() {
		src.unlisted = append(src.unlisted, fileTensor(src.folder, s))
	}
	src.addFound(found)
	src.notes = append(src.notes, src.checkpoint.Notes()...)
	for i := range src.Files {
		if f := &src.Files[i]; f.Name == ConfigName {
			f.Data = declared.Strip(f.Data)
			f.Size = int64(len(f.Data))
		}
	}
	return src.settleClass()
}

// settleClass lets config.json declare a class that has an output head if and only if the checkpoint has one.
func (src *Source) settleClass() error {
	for i := range src.Files {
		f := &src.Files[i]
		if f.Name != ConfigName {
			continue
		}
		config, model, note, err := arch.SettleHead(f.Data, src.Model, src.infos())
		if err != nil {
			return src.Located(err)
		}
		f.Data, f.Size, src.Model = config, int64(len(config)), model
		if note != "" {
			src.notes = append(src.notes, ConfigName+": "+note)
		}
	}
	_, listed := src.File(ModulesName)
	_, pooled := src.File(defaultPooling + "/" + ConfigName)
	if !arch.HasHead(src.Model) && !listed && !pooled {
		src.notes = append(src.notes, "there is no "+ModulesName+" of sentence-transformers: an embedding is the vector of "+
			"the last token")
	}
	return nil
}

// layoutHint guesses what a folder without config.json is.
func layoutHint(entries []fs.DirEntry) string {
	for _, hint := range []struct{ file, text string }{
		{"model_index.json", ": it is an image-generation model (model_index.json), which is not supported"},
		{"adapter_config.json", ": it is an adapter; name its base model in the FROM line of a Modelfile, " +
			"and this folder in an ADAPTER line"},
		{"params.json", ": it has its publisher's own layout (params.json); use the Hugging Face checkpoint"},
	} {
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == hint.file }) {
			return hint.text
		}
	}
	return ": want a folder with config.json and *.safetensors, or a GGUF file"
}
