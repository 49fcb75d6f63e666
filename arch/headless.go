package arch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Classes of a model without its output head end in baseClass or, inside a multimodal family, in textClass. Classes
// with a head end in one of headClasses.
const (
	baseClass = "Model"
	textClass = "TextModel"
)

var headClasses = []string{"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"}

// cutClass returns the name that the classes of one model share; ok is false if the class has no output head.
func cutClass(class string) (stem string, ok bool) {
	for _, end := range headClasses {
		if stem, ok := strings.CutSuffix(class, end); ok {
			return stem, true
		}
	}
	return "", false
}

// isBase reports whether a class is one of the type's without the output head, such as Qwen3Model.
func (a Arch) isBase(class string) bool {
	return isBaseClass(class) && a.withHead(class, false) != ""
}

// isBaseClass reports whether a class has no output head. ChatGLMModel and its like have one.
func isBaseClass(class string) bool {
	listed := func(a Arch) bool { return slices.Contains(a.Architectures, class) }
	_, head := cutClass(class)
	return strings.HasSuffix(class, baseClass) && !head && !slices.ContainsFunc(known, listed)
}

// otherHead says for a message that a class has a head that does not predict tokens; "" = it does not.
func otherHead(classes []string) string {
	for _, c := range classes {
		for _, part := range []string{"Classification", "Reward", "ForScore", "QuestionAnswering"} {
			if strings.Contains(c, part) {
				return "a head that classifies or scores texts is not supported; "
			}
		}
	}
	return ""
}

// withHead returns the class with an output head of a class without; "" = it is of another type.
func (a Arch) withHead(class string, nested bool) (found string) {
	for _, c := range a.Architectures {
		stem, ok := cutClass(c)
		if !ok || class != stem+baseClass && class != stem+textClass {
			continue
		}
		if found == "" || nested == strings.HasSuffix(c, headClasses[1]) {
			found = c
		}
	}
	return found
}

// HasHead reports whether a model has an output head, of its own or the embedding. One without computes embeddings
// only.
func HasHead(m Model) bool { return !commonOf(m).Headless }

// SettleHead returns the config.json of a checkpoint with these tensors, its model, and a note if the model has no
// output head or not the declared one. The tensors decide: a class that ends in Model may have a head, and a model that
// does not tie its head to the embedding may have none.
func SettleHead(config []byte, m Model, have []TensorInfo) ([]byte, Model, string, error) {
	c := commonOf(m)
	declared, _ := parseObject(config)
	modelType := declared.str("model_type", "")
	i := slices.IndexFunc(known, func(a Arch) bool {
		return slices.Contains(a.Architectures, c.Architecture) ||
			a.isBase(c.Architecture) && (modelType == "" || a.goesBy(modelType))
	})
	if i < 0 || known[i].DraftOnly {
		return config, m, "", nil
	}
	a := known[i]
	if !c.Headless {
		stem, ok := cutClass(c.Architecture)
		if c.TieEmbeddings || !ok || hasHead(m, have) {
			return config, m, "", nil
		}
		class := stem + baseClass
		if strings.HasSuffix(modelType, "_text") {
			class = stem + textClass
		}
		return reclassed(config, class, fmt.Sprintf("the checkpoint has no output head, and tie_word_embeddings is "+
			"false: it is imported as %s, which computes embeddings only", class))
	}
	class := a.withHead(c.Architecture, declared.has("text_config"))
	whole, with, _, err := reclassed(config, class, "")
	if err != nil {
		return nil, nil, "", err
	}
	if hasHead(with, have) {
		return whole, with, fmt.Sprintf("architectures names %s, but the checkpoint has an output head: it is imported as %s",
			c.Architecture, class), nil
	}
	return config, m, fmt.Sprintf("%s has no output head: the model computes embeddings only", c.Architecture), nil
}

// reclassed returns a config.json that declares a class, and its model.
func reclassed(config []byte, class, note string) ([]byte, Model, string, error) {
	names, err := json.Marshal([]string{class})
	if err != nil {
		return nil, nil, "", err
	}
	config = setKeys(pyjson.Plain(config), map[string][]byte{"architectures": names})
	m, err := Detect(config)
	return config, m, note, err
}

// hasHead reports whether tensors have the output head of a model, under any of its names.
func hasHead(m Model, have []TensorInfo) bool {
	t := m.Table()
	names := append([]string{headName}, headAliases...)
	for _, s := range t.Specs {
		if s.IsHead() {
			names = append(names, allNames(s)...)
		}
	}
	n := t.Names()
	return slices.ContainsFunc(have, func(h TensorInfo) bool {
		own, _ := n.Canonical(h.Name)
		return slices.Contains(names, own) || slices.Contains(names, h.Name)
	})
}
