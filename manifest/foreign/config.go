package foreign

import (
	"encoding/json"
	"slices"
	"strings"

	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
)

// readConfig reads what the config says of the model and of the layers. All of it is optional, so that a config which
// is damaged says nothing.
func (i *Image) readConfig(config []byte) {
	if i.Container {
		i.readContainer(config)
	}
	switch i.Format {
	case ModelKit:
		i.readKitfile(config)
	case ModelRunner:
		i.readRunner(config)
	case ModelPack:
		var m modelspec.Model
		if json.Unmarshal(config, &m) == nil {
			i.Licenses = m.Descriptor.Licenses
		}
	}
	i.Licenses = slices.DeleteFunc(i.Licenses, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// kitPart is an element of a Kitfile that has a layer.
type kitPart struct {
	Path    string        `json:"path"`
	License string        `json:"license"`
	Digest  digest.Digest `json:"digest"` // of its layer; early versions do not write it
}

// kitfile is the config of a ModelKit (kitops.org/docs/kitfile/format).
type kitfile struct {
	Package struct {
		License string `json:"license"`
	} `json:"package"`
	Model struct {
		kitPart
		Parts []kitPart `json:"parts"`
	} `json:"model"`
	Code     []kitPart `json:"code"`
	Datasets []kitPart `json:"datasets"`
	Docs     []kitPart `json:"docs"`
}

// readKitfile says what each archive holds. The model of a kit may be in another kit, which its path names.
func (i *Image) readKitfile(config []byte) {
	var k kitfile
	if json.Unmarshal(config, &k) != nil {
		return
	}
	i.Licenses = []string{k.Model.License}
	if k.Model.License == "" {
		i.Licenses = []string{k.Package.License}
	}
	model := func(l Layer) bool { return strings.Contains(l.MediaType, ".modelkit.model.") }
	if !slices.ContainsFunc(i.Layers, model) {
		i.base = k.Model.Path
	}
	paths := map[digest.Digest]string{}
	for _, p := range slices.Concat([]kitPart{k.Model.kitPart}, k.Model.Parts, k.Code, k.Datasets, k.Docs) {
		if clean, err := cleanPath(strings.TrimSpace(p.Path), true); err == nil {
			paths[p.Digest] = clean
		}
	}
	for n := range i.Layers {
		if l := &i.Layers[n]; l.Path == "" && l.Archive {
			l.Path = paths[l.Digest]
		}
	}
}

// maxContext is the largest context length that a model may be packed with.
const maxContext = 1 << 30

// readRunner reads the length of the context that a model is packed with.
func (i *Image) readRunner(config []byte) {
	var c struct {
		Config struct {
			ContextSize int64 `json:"context_size"`
		} `json:"config"`
	}
	if json.Unmarshal(config, &c) == nil && c.Config.ContextSize > 0 && c.Config.ContextSize <= maxContext {
		i.Context = c.Config.ContextSize
	}
}

// readContainer finds out whether a container image has something to run. Images that have not are made to carry data,
// such as those of RamaLama, which have a label, and of KServe.
func (i *Image) readContainer(config []byte) {
	var c struct {
		Config struct {
			Entrypoint, Cmd []string
			Labels          map[string]string
		} `json:"config"`
	}
	if config == nil || json.Unmarshal(config, &c) != nil {
		return
	}
	labelled := strings.HasPrefix(c.Config.Labels["org.containers.type"], "ai.image.model")
	i.data = labelled || len(c.Config.Entrypoint)+len(c.Config.Cmd) == 0
}
