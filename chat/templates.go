package chat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Names of templates that a request chooses, as in transformers.
const (
	DefaultName = "default"
	toolsName   = "tool_use" // for requests with tools
	ragName     = "rag"      // for requests with documents
)

// Templates are the chat templates of a model by name. They are safe for concurrent use. A nil one has none.
type Templates struct {
	list []Named
	at   map[string]int // indices by name
	err  error          // why the model's files cannot be read

	mu       sync.Mutex
	compiled map[string]Template // by name
}

// Named is one of a model's templates.
type Named struct {
	Name, Text string
	File       string // that it is from
}

// Chosen is the template for a request.
type Chosen struct {
	Template Template
	Text     string
}

// One returns a set of a single template, which all requests use.
func One(text string) *Templates {
	return &Templates{list: []Named{{Name: DefaultName, Text: text}}, at: map[string]int{DefaultName: 0}}
}

// Unreadable returns a set without templates, for which every request is this error.
func Unreadable(err error) *Templates { return &Templates{err: err} }

// Err says why the model's templates cannot be read.
func (t *Templates) Err() error {
	if t == nil {
		return nil
	}
	return t.err
}

// Empty reports whether the model has no template, not even one that cannot be read.
func (t *Templates) Empty() bool { return t == nil || len(t.list) == 0 && t.err == nil }

// All returns the templates in the order of the model's files.
func (t *Templates) All() []Named {
	if t == nil {
		return nil
	}
	return t.list
}

// Rendered returns the templates that requests choose. The others are rendered only where a user names them.
func (t *Templates) Rendered() []Named {
	var out []Named
	for _, n := range t.All() {
		if ByRequest(n.Name) {
			out = append(out, n)
		}
	}
	return out
}

// ByRequest reports whether requests choose the template with a name.
func ByRequest(name string) bool {
	return slices.Contains([]string{DefaultName, toolsName, ragName}, name)
}

// Get returns a template by its name; "" is the default one. It fails with ErrNoTemplate, with ErrOtherTemplates and
// the names that exist, or because the templates cannot be read.
func (t *Templates) Get(name string) (Named, error) {
	switch {
	case t.Err() != nil:
		return Named{}, t.err
	case len(t.All()) == 0:
		return Named{}, ErrNoTemplate
	case name == "":
		name = DefaultName
	}
	if i, ok := t.at[name]; ok {
		return t.list[i], nil
	}
	return Named{}, fmt.Errorf("%w: there is no %q, but %s", ErrOtherTemplates, clip.Line(name, maxQuoted), t.names())
}

// maxQuoted bounds each text in a message.
const maxQuoted = 80

// names lists the names for a message.
func (t *Templates) names() string {
	var list []string
	for _, n := range t.list[:min(len(t.list), 10)] {
		name := clip.Line(n.Name, maxQuoted)
		if quoted := strconv.Quote(name); quoted != `"`+name+`"` || name == "" {
			name = quoted
		}
		list = append(list, name)
	}
	if more := len(t.list) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d others", more))
	}
	return strings.Join(list, ", ")
}

func (t *Templates) has(name string) bool {
	if t == nil {
		return false
	}
	_, ok := t.at[name]
	return ok
}

// add adds a template. Of several with a name, the last counts. An empty one counts as none.
func (t *Templates) add(n Named) {
	at, ok := t.at[n.Name]
	switch {
	case n.Text == "":
	case ok:
		t.list[at] = n
	default:
		if t.at == nil {
			t.at = map[string]int{}
		}
		t.at[n.Name] = len(t.list)
		t.list = append(t.list, n)
	}
}

// For returns the template of a request: tool_use for tools, as in transformers, or else rag for documents, if the
// model has it, or else the default one. Its error is one of Get.
func (t *Templates) For(r Request) (Named, error) { return t.pick(r.offers()) }

// ForVars is For with the variables of a template.
func (t *Templates) ForVars(vars *jinja.Dict) (Named, error) { return t.pick(offered(vars)) }

func (t *Templates) pick(tools, documents bool) (Named, error) {
	name := ""
	switch {
	case tools && t.has(toolsName):
		name = toolsName
	case documents && t.has(ragName):
		name = ragName
	}
	return t.Get(name)
}

// offers reports whether the template gets tools and documents.
func (r Request) offers() (tools, documents bool) {
	vars := jinja.NewDict()
	if len(r.Tools) > 0 {
		_ = vars.Set("tools", true)
	}
	_ = vars.Set("documents", r.Documents)
	if r.Extra != nil {
		for _, key := range []string{"tools", "documents"} {
			if v, ok := r.Extra.Get(key); ok {
				_ = vars.Set(key, v)
			}
		}
	}
	return offered(vars)
}

// offered reports whether variables have tools, which are not None, and documents. An empty list of tools chooses the
// template for tools, as in transformers; servers leave it out.
func offered(vars *jinja.Dict) (tools, documents bool) {
	v, ok := vars.Get("tools")
	tools = ok && v != nil
	v, ok = vars.Get("documents")
	if list, isList := v.(*jinja.List); isList {
		return tools, len(list.Items) > 0
	}
	return tools, ok && v != nil
}

// Choose returns the compiled template of a request. Its error is one of For or Parse, and names the template if there
// are several.
func (t *Templates) Choose(ctx context.Context, r Request) (Chosen, error) {
	n, err := t.For(r)
	if err != nil {
		return Chosen{}, err
	}
	compiled, err := t.Compile(ctx, n)
	return Chosen{compiled, n.Text}, err
}

// Compile compiles one of the templates, once.
func (t *Templates) Compile(ctx context.Context, n Named) (Template, error) {
	t.mu.Lock()
	compiled := t.compiled[n.Name]
	t.mu.Unlock()
	if compiled != nil {
		return compiled, nil
	}
	compiled, err := Parse(ctx, n.Text)
	if err != nil {
		if len(t.list) > 1 {
			err = fmt.Errorf("template %q: %w", clip.Line(n.Name, maxQuoted), err)
		}
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compiled == nil {
		t.compiled = map[string]Template{}
	}
	t.compiled[n.Name] = compiled
	return compiled, nil
}
