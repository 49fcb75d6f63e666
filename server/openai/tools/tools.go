package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/server/wire"
)

// List are the tools of a request as the client sent them.
type List []json.RawMessage

// Kind is what a tool is for the client.
type Kind string

// Kinds of tools.
const (
	Function Kind = "function"
	Custom   Kind = "custom"      // takes a text
	Search   Kind = "tool_search" // finds more tools; the client runs it
)

const namespace = "namespace" // a type in a list that holds tools

// Tool is a tool that the model is offered as a function.
type Tool struct {
	Kind      Kind
	Namespace string // "": none
	Name      string // as the client knows it
	Offered   string // the function's name

	Shown chat.Tool // the function, in the form of chat completions

	function *jinja.Dict // as the client described it
	outer    *jinja.Dict // has the function as a member; nil: it is the whole tool
	at       string      // what errors call the tool
}

// Set are the tools of a request.
type Set struct {
	tools  []Tool
	listed []json.RawMessage // as sent, without those that are dropped
	hosted []string          // types of the tools that are dropped
	at     string            // the path of the list
	choice string            // the path of the choice among the tools
	names  map[string]bool   // offered names
}

// ReadChat reads the tools of a chat completion.
func ReadChat(ctx context.Context, list List) (*Set, error) {
	return readChat(ctx, list, "tools", "tool_choice")
}

// ReadFunctions reads the functions of a chat completion, the older form of tools.
func ReadFunctions(ctx context.Context, list List) (*Set, error) {
	return readChat(ctx, list, "functions", "function_call")
}

func readChat(ctx context.Context, list List, at, choice string) (*Set, error) {
	s := &Set{at: at, choice: choice}
	if err := s.add(list, at, false); err != nil {
		return nil, err
	}
	return s, s.name(ctx)
}

// ReadResponses reads the tools of a response, and those that later items of its input add.
func ReadResponses(ctx context.Context, list List, more ...Added) (*Set, error) {
	s := &Set{at: "tools", choice: "tool_choice"}
	if err := s.add(list, s.at, true); err != nil {
		return nil, err
	}
	listed := s.listed
	for _, m := range more {
		if err := s.add(m.List, m.At, true); err != nil {
			return nil, err
		}
	}
	s.listed = listed
	return s, s.name(ctx)
}

// Added are tools that an item of the input adds.
type Added struct {
	List List
	At   string // the path of the list, for errors
}

// Listed returns the list without the tools that are dropped.
func (s *Set) Listed() []json.RawMessage { return s.listed }

// add reads a list. With hosted, tools of unknown types are dropped.
func (s *Set) add(list List, at string, hosted bool) error {
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", at, i)
		d, err := Object(raw, path)
		if err != nil {
			return err
		}
		kind := typeOf(d)
		known := slices.Contains([]Kind{Function, Custom}, kind) ||
			hosted && (kind == namespace || kind == Search && text(d, "execution") == "client")
		switch {
		case !known && hosted:
			s.hosted = append(s.hosted, string(kind))
			continue
		case !known:
			return wire.BadParam(path, "tool type %s is not supported: use function or custom", wire.Clip(string(kind)))
		case kind == namespace:
			err = s.addNamespace(d, path)
		default:
			err = s.addTool(kind, "", "", d, path)
		}
		if err != nil {
			return err
		}
		s.listed = append(s.listed, raw)
	}
	return nil
}

func (s *Set) addNamespace(d *jinja.Dict, at string) error {
	name := text(d, "name")
	if name == "" {
		return wire.BadParam(at+".name", "the namespace has no name")
	}
	about := text(d, "description")
	if about == "Tools in the "+name+" namespace." { // what clients say of a namespace without a description
		about = ""
	}
	v, _ := d.Get("tools")
	list, ok := v.(*jinja.List)
	if !ok {
		return wire.BadParam(at+".tools", "must be a list of tools")
	}
	for i, v := range list.Items {
		path := fmt.Sprintf("%s.tools[%d]", at, i)
		tool, ok := v.(*jinja.Dict)
		if !ok {
			return wire.BadParam(path, "must be an object")
		}
		kind := typeOf(tool)
		if kind != Function && kind != Custom {
			return wire.BadParam(path, "tool type %s is not supported in a namespace: use function or custom",
				wire.Clip(string(kind)))
		}
		if err := s.addTool(kind, name, about, tool, path); err != nil {
			return err
		}
		about = "" // the first tool introduces the namespace
	}
	return nil
}

// addTool adds a tool. about says what its namespace is for.
func (s *Set) addTool(kind Kind, namespace, about string, d *jinja.Dict, at string) error {
	t := Tool{Kind: kind, Namespace: namespace, function: d, at: at}
	if kind == Search {
		t.Name = string(Search)
	} else {
		if v, ok := d.Get(string(kind)); ok {
			if t.function, ok = v.(*jinja.Dict); !ok {
				return wire.BadParam(at+"."+string(kind), "must be an object")
			}
			t.outer = d
			at += "." + string(kind)
		}
		if t.Name = text(t.function, "name"); t.Name == "" {
			return wire.BadParam(at+".name", "the tool's name is missing")
		}
	}
	if about != "" {
		t.function = t.function.Clone()
		t.function.Put("description", fmt.Sprintf("(%s: %s) %s", namespace, about, text(t.function, "description")))
	}
	s.tools = append(s.tools, t)
	return nil
}

// name gives the tools their offered names, and builds what the model sees.
func (s *Set) name(ctx context.Context) error {
	if err := chat.CheckToolCount(len(s.tools)); err != nil {
		return wire.BadParam(s.at, "%v", err)
	}
	s.names = map[string]bool{}
	patterns := 0
	for i := range s.tools { // first those that keep their name
		t := &s.tools[i]
		if _, regex := t.definition(); regex {
			if patterns++; patterns > limits.ToolPatterns {
				return wire.BadParam(t.at, "at most %d tools may have regular expressions", limits.ToolPatterns)
			}
		}
		if t.Kind == Function && t.Namespace == "" {
			t.Offered = t.Name
			s.names[t.Name] = true
		}
	}
	shown := make([]chat.Tool, len(s.tools))
	for i := range s.tools {
		t := &s.tools[i]
		if t.Offered == "" {
			t.Offered = unused(Joined(t.Namespace, t.Name), s.names)
			s.names[t.Offered] = true
		}
		if t.Shown = t.show(ctx); ctx.Err() != nil {
			return ctx.Err()
		}
		shown[i] = t.Shown
	}
	if err := chat.CheckTools(shown); err != nil {
		return wire.BadParam(s.at, "%v", err)
	}
	return nil
}

// OfferedName returns the name under which the model knows a tool of an earlier call, which the request need not offer.
func (s *Set) OfferedName(namespace, name string) string {
	for _, t := range s.tools {
		if t.Namespace == namespace && t.Name == name {
			return t.Offered
		}
	}
	if namespace == "" {
		return name
	}
	return Joined(namespace, name)
}

// Object decodes an object of a request, with its members in order. at is what errors call it.
func Object(raw json.RawMessage, at string) (*jinja.Dict, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, wire.BadParam(at, "%v", jsonfit.Wrong(raw, "an object"))
	}
	d, err := jinja.DecodeVars(raw)
	if err != nil {
		return nil, wire.BadParam(at, "%v", err)
	}
	return d, nil
}

// typeOf returns a tool's type. Some clients leave it out.
func typeOf(d *jinja.Dict) Kind {
	if v, given := d.Get("type"); given && v != nil {
		kind, ok := v.(string)
		if !ok {
			return Kind(fmt.Sprint(v))
		}
		return Kind(kind)
	}
	if _, ok := d.Get(string(Custom)); ok {
		return Custom
	}
	return Function
}

func text(d *jinja.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}
