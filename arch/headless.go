package arch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// isBase reports whether a class is one of the type's without the output head, such as Qwen3Model. ChatGLMModel and its
// like have one.
func (a Arch) isBase(class string) bool {
	return config.IsBaseClass(class) && !slices.Contains(a.Architectures, class) && a.withHead(class, false) != ""
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
		stem, ok := config.CutClass(c)
		if !ok || class != stem+config.BaseClass && class != stem+config.TextClass {
			continue
		}
		if found == "" || nested == strings.HasSuffix(c, config.HeadClasses[1]) {
			found = c
		}
	}
	return found
}

// SettleHead returns the config.json of a checkpoint with these tensors, its model, and a note if the model has no
// output head or not the declared one. The tensors decide: a class that ends in Model may have a head, and a model that
// does not tie its head to the embedding may have none.
func SettleHead(data []byte, m Model, have []table.TensorInfo) ([]byte, Model, string, error) {
	c := config.CommonOf(m)
	declared, _ := config.Parse(data)
	modelType := declared.String("model_type", "")
	i := slices.IndexFunc(known, func(a Arch) bool {
		return slices.Contains(a.Architectures, c.Architecture) ||
			a.isBase(c.Architecture) && (modelType == "" || a.goesBy(modelType))
	})
	if i < 0 || known[i].DraftOnly {
		return data, m, "", nil
	}
	a := known[i]
	if !c.Headless {
		stem, ok := config.CutClass(c.Architecture)
		if c.TieEmbeddings || !ok || hasHead(m, have) {
			return data, m, "", nil
		}
		class := stem + config.BaseClass
		if strings.HasSuffix(modelType, "_text") {
			class = stem + config.TextClass
		}
		return reclassed(data, class, fmt.Sprintf("the checkpoint has no output head, and tie_word_embeddings is "+
			"false: it is imported as %s, which computes embeddings only", class))
	}
	class := a.withHead(c.Architecture, declared.Has("text_config"))
	whole, with, _, err := reclassed(data, class, "")
	if err != nil {
		return nil, nil, "", err
	}
	if hasHead(with, have) {
		return whole, with, fmt.Sprintf("architectures names %s, but the checkpoint has an output head: it is imported as %s",
			c.Architecture, class), nil
	}
	return data, m, fmt.Sprintf("%s has no output head: the model computes embeddings only", c.Architecture), nil
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
func hasHead(m Model, have []table.TensorInfo) bool {
	t := m.Table()
	names := append([]string{table.HeadName}, table.HeadAliases...)
	for _, s := range t.Specs {
		if s.IsHead() {
			names = append(names, table.AllNames(s)...)
		}
	}
	n := t.Names()
	return slices.ContainsFunc(have, func(h table.TensorInfo) bool {
		own, _ := n.Canonical(h.Name)
		return slices.Contains(names, own) || slices.Contains(names, h.Name)
	})
}

// SpecialTokens returns the tokens that begin and end a text, as config.json names them.
func SpecialTokens(m Model) (bos, eos []int32) {
	c := config.CommonOf(m)
	return c.BOS, c.EOS
}
