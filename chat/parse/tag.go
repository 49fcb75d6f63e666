package parse

// tag is a text with an effect in the current state.
type tag struct {
	text string
	act  func(*machine)
}

// match finds the tag that equals cand. more reports whether cand is a prefix of a tag.
func (m *machine) match() (found *tag, more bool) {
	m.tags(func(text string, act func(*machine)) bool {
		switch {
		case text == "" || len(text) < len(m.cand) || text[:len(m.cand)] != string(m.cand):
		case len(text) == len(m.cand):
			found = &tag{text, act}
			return false
		default:
			more = true
		}
		return true
	})
	return found, more
}

// tags yields the tags of the current state.
func (m *machine) tags(yield func(string, func(*machine)) bool) {
	thinking := m.state == inThinking
	if thinking {
		if !yield(m.think.Close, (*machine).endThinking) || m.name != "" && !yield(m.name, (*machine).dropName) {
			return
		}
		if m.fresh && !yield(m.think.Open, (*machine).reopenThinking) {
			return
		}
	} else if m.fresh || m.f.anywhere {
		if !yield(m.think.Open, (*machine).beginThinking) {
			return
		}
	}
	if !thinking || m.f.callEndsThinking {
		for i := range m.f.forms {
			f := &m.f.forms[i]
			if !yield(f.open, func(m *machine) { m.begin(f, f.open) }) {
				return
			}
		}
	}
	if thinking {
		return
	}
	for _, t := range m.f.control {
		if !yield(t, (*machine).drop) {
			return
		}
	}
	if m.after {
		for _, t := range m.f.noise {
			if !yield(t, (*machine).drop) {
				return
			}
		}
	}
}

func (m *machine) beginThinking() {
	m.state, m.fresh, m.skip, m.after, m.name = inThinking, true, true, false, m.f.name
	m.space = m.space[:0]
}

// reopenThinking drops an opening tag that the prompt already contains.
func (m *machine) reopenThinking() { m.beginThinking() }

func (m *machine) dropName() { m.name = "" }

func (m *machine) endThinking() {
	m.state, m.fresh, m.skip, m.after = inContent, true, true, false
	m.space = m.space[:0]
}

// drop ignores a tag that carries no information.
func (m *machine) drop() {
	m.space, m.skip = m.space[:0], true
}
