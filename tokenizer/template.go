package tokenizer

// template is the post-processor: the special tokens around the ids of a text. nil adds none.
type template []templatePiece

// templatePiece is the text itself (ids is nil) or special tokens.
type templatePiece struct {
	ids []int32
}

// newTemplate parses a post-processor. ByteLevel only adjusts offsets; the others add ids.
func newTemplate(n *node) (template, error) {
	c, err := asComponent(n, "post_processor")
	if err != nil {
		return nil, err
	}
	return buildTemplate(c)
}

func buildTemplate(c component) (template, error) {
	switch c.name {
	case "ByteLevel":
		return nil, nil
	case "TemplateProcessing":
		return readTemplate(c)
	case "BertProcessing", "RobertaProcessing":
		return readPair(c)
	case "Sequence":
		parts, err := c.parts("processors")
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
				return nil, c.unsupported("that adds special tokens twice is not supported")
			}
			if next != nil {
				t = next
			}
		}
		return t, nil
	}
	return nil, c.unsupported("is not supported")
}

// readPair parses the forms that predate templates: cls, the text, sep.
func readPair(c component) (template, error) {
	t := template{{}, {}, {}}
	for at, key := range map[int]string{0: "cls", 2: "sep"} {
		pair, err := c.field(key, arrayNode)
		if err != nil {
			return nil, err
		}
		if len(pair.list) != 2 || pair.list[0].kind != stringNode {
			return nil, c.invalid("has a %s that is not [token, id]", key)
		}
		id, ok := parseID(pair.list[1])
		if !ok {
			return nil, c.invalid("has %q as the id of %s", pair.list[1].text, key)
		}
		t[at].ids = []int32{id}
	}
	return t, nil
}

func readTemplate(c component) (template, error) {
	single, err := c.field("single", arrayNode)
	if err != nil {
		return nil, err
	}
	special, err := c.field("special_tokens", objectNode)
	if err != nil {
		return nil, err
	}
	t := template{}
	for _, piece := range single.list {
		if piece.kind != objectNode || len(piece.keys) != 1 || piece.list[0].kind != objectNode {
			const message = "has a piece in single that is neither {\"Sequence\": ...} nor {\"SpecialToken\": ...}"
			return nil, c.invalid(message)
		}
		id := piece.list[0].get("id")
		if id == nil || id.kind != stringNode {
			return nil, c.invalid("has a piece without id in single")
		}
		switch kind := piece.keys[0]; kind {
		case "Sequence":
			if id.text != "A" {
				return nil, c.invalid("uses sequence %q in single, where there is only A", id.text)
			}
			t = append(t, templatePiece{})
		case "SpecialToken":
			ids, err := specialIDs(c, special.get(id.text), id.text)
			if err != nil {
				return nil, err
			}
			t = append(t, templatePiece{ids})
		default:
			return nil, c.unsupported("with a piece of kind %q is not supported", kind)
		}
	}
	return t, nil
}

// specialIDs returns the ids of a special token of the template, never nil.
func specialIDs(c component, token *node, name string) ([]int32, error) {
	if token == nil || token.kind != objectNode {
		return nil, c.invalid("uses the special token %q, which its special_tokens does not have", name)
	}
	list := token.get("ids")
	if list == nil || list.kind != arrayNode {
		return nil, c.invalid("has no ids for the special token %q", name)
	}
	ids := []int32{}
	for _, n := range list.list {
		id, ok := parseID(n)
		if !ok {
			return nil, c.invalid("has %q as an id of the special token %q", n.text, name)
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
