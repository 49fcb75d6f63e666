package tokenizer

import (
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// template is the post-processor: the special tokens around the ids of a text. nil adds none.
type template []templatePiece

// templatePiece is the text itself (ids is nil) or special tokens.
type templatePiece struct {
	ids []int32
}

// newTemplate parses a post-processor. ByteLevel only adjusts offsets; the others add ids.
func newTemplate(n *jsonfile.Node) (template, error) {
	c, err := jsonfile.AsComponent(n, "post_processor")
	if err != nil {
		return nil, err
	}
	return buildTemplate(c)
}

func buildTemplate(c jsonfile.Component) (template, error) {
	switch c.Name {
	case "ByteLevel":
		return nil, nil
	case "TemplateProcessing":
		return readTemplate(c)
	case "BertProcessing", "RobertaProcessing":
		return readPair(c)
	case "Sequence":
		parts, err := c.Parts("processors")
		if err != nil {
			return nil, err
		}
		var t template
		for _, part := range parts {
			next, err := buildTemplate(part)
			if err != nil {
				return nil, err
			}
			if t != nil && next != nil { // the second one would treat the first one's pieces as separate texts
				return nil, c.Unsupported("that adds special tokens twice is not supported")
			}
			if next != nil {
				t = next
			}
		}
		return t, nil
	}
	return nil, c.Unsupported("is not supported")
}

// readPair parses the forms that predate templates: cls, the text, sep.
func readPair(c jsonfile.Component) (template, error) {
	t := template{{}, {}, {}}
	for at, key := range map[int]string{0: "cls", 2: "sep"} {
		pair, err := c.Field(key, jsonfile.ArrayNode)
		if err != nil {
			return nil, err
		}
		if len(pair.List) != 2 || pair.List[0].Kind != jsonfile.StringNode {
			return nil, c.Invalid("has a %s that is not [token, id]", key)
		}
		id, ok := jsonfile.ParseID(pair.List[1])
		if !ok {
			return nil, c.Invalid("has %q as the id of %s", pair.List[1].Text, key)
		}
		t[at].ids = []int32{id}
	}
	return t, nil
}

// mostTexts bounds how often a template has the text.
const mostTexts = 4

func readTemplate(c jsonfile.Component) (template, error) {
	single, err := c.Field("single", jsonfile.ArrayNode)
	if err != nil {
		return nil, err
	}
	tokens, err := c.Field("special_tokens", jsonfile.ObjectNode)
	if err != nil {
		return nil, err
	}
	const most = limits.TokenizerSpecial
	if len(single.List) > most {
		return nil, c.Unsupported("with more than %d pieces in single is not supported", most)
	}
	t := template{}
	texts, ids := 0, 0
	for _, piece := range single.List {
		if piece.Kind != jsonfile.ObjectNode || len(piece.Keys) != 1 || piece.List[0].Kind != jsonfile.ObjectNode {
			const message = "has a piece in single that is neither {\"Sequence\": ...} nor {\"SpecialToken\": ...}"
			return nil, c.Invalid(message)
		}
		id := piece.List[0].Get("id")
		if id == nil || id.Kind != jsonfile.StringNode {
			return nil, c.Invalid("has a piece without id in single")
		}
		switch kind := piece.Keys[0]; kind {
		case "Sequence":
			if id.Text != "A" {
				return nil, c.Invalid("uses sequence %q in single, where there is only A", id.Text)
			}
			t = append(t, templatePiece{})
			texts++
		case "SpecialToken":
			special, err := specialIDs(c, tokens.Get(id.Text), id.Text)
			if err != nil {
				return nil, err
			}
			t = append(t, templatePiece{special})
			ids += len(special)
		default:
			return nil, c.Unsupported("with a piece of kind %q is not supported", kind)
		}
	}
	if texts > mostTexts || ids > most {
		return nil, c.Unsupported("with %d texts and %d special tokens in single is not supported: at most %d and %d", texts,
			ids, mostTexts, most)
	}
	return t, nil
}

// specialIDs returns the ids of a special token of the template, never nil.
func specialIDs(c jsonfile.Component, token *jsonfile.Node, name string) ([]int32, error) {
	if token == nil || token.Kind != jsonfile.ObjectNode {
		return nil, c.Invalid("uses the special token %q, which its special_tokens does not have", name)
	}
	list := token.Get("ids")
	if list == nil || list.Kind != jsonfile.ArrayNode {
		return nil, c.Invalid("has no ids for the special token %q", name)
	}
	ids := []int32{}
	for _, n := range list.List {
		id, ok := jsonfile.ParseID(n)
		if !ok {
			return nil, c.Invalid("has %q as an id of the special token %q", n.Text, name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// apply returns text within the template; without special it returns only the text.
func (t template) apply(text []int32, special bool) []int32 {
	if t == nil {
		return text
	}
	out := make([]int32, 0, len(text)+len(t))
	for _, piece := range t {
		if piece.ids == nil {
			out = append(out, text...)
		} else if special {
			out = append(out, piece.ids...)
		}
	}
	return out
}
