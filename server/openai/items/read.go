package items

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/wire"
)

// Conversation is what items say to a model.
type Conversation struct {
	Messages []chat.Message
	At       []string // of the item that each message starts with
}

const roleTool = "tool"

// Read returns the conversation of a list of items. set are the tools of the request, whose names calls get.
func Read(list []Item, set *tools.Set) (Conversation, error) {
	r := reader{set: set}
	for _, it := range list {
		if err := r.read(it); err != nil {
			return Conversation{}, err
		}
	}
	return r.Conversation, nil
}

type reader struct {
	Conversation
	set     *tools.Set
	thought strings.Builder // reasoning that belongs to what the model says next
}

func (r *reader) read(it Item) error {
	kind := it.text("type")
	if read, ok := readers[kind]; ok {
		return read(r, it)
	}
	_, hasContent := it.Get("content")
	output := strings.HasSuffix(kind, "_call_output")
	switch {
	case kind == "" || it.text("role") != "" && hasContent:
		return r.message(it)
	case output:
		return r.result(it, "output")
	case strings.HasSuffix(kind, "_call") && it.text("call_id") != "":
		r.call(it, it.text("call_id"), strings.TrimSuffix(kind, "_call"), it.rest())
	}
	return nil // nothing for the model
}

// readers read items of some types. Those of other types are read by their form.
var readers = map[string]func(*reader, Item) error{
	typeMessage: (*reader).message,
	"reasoning": (*reader).reasoning,

	"function_call":           (*reader).functionCall,
	"custom_tool_call":        (*reader).customCall,
	"custom_tool_call_output": (*reader).output,
	"function_call_output":    (*reader).output,
	"local_shell_call":        (*reader).action,
	"shell_call":              (*reader).action,
	"apply_patch_call":        (*reader).action,
	"computer_call_output":    (*reader).screenshot,
	"shell_call_output":       (*reader).shellOutput,

	"file_search_call":      (*reader).fileSearch,
	"code_interpreter_call": (*reader).interpreter,
	"image_generation_call": (*reader).generation,
	"mcp_call":              (*reader).mcp,
	"program":               (*reader).program,
	"program_output":        (*reader).programOutput,
	"tool_search_call":      (*reader).search,
	"tool_search_output":    (*reader).searchOutput,

	"compaction":         (*reader).summary,
	"compaction_summary": (*reader).summary,
	"context_compaction": (*reader).summary,
	// These hold nothing for the model.
	"additional_tools": (*reader).skip, "configuration_update": (*reader).skip, typeTrigger: (*reader).skip,
}

func (r *reader) skip(Item) error { return nil }

func (r *reader) add(it Item, m chat.Message) {
	if m.Role != chat.Assistant {
		r.thought.Reset() // the model said nothing after it
	}
	r.Messages, r.At = append(r.Messages, m), append(r.At, it.At)
}

func (r *reader) message(it Item) error {
	content, ok := it.Get("content")
	m := chat.Message{Role: strings.ToLower(it.text("role"))}
	switch {
	case m.Role == "":
		return wire.BadParam(it.At+".role", "is missing")
	case !ok && m.Role != chat.Assistant:
		return wire.BadParam(it.At+".content", "is missing")
	}
	if err := m.SetContent(content); err != nil {
		return BadField(it.At, err)
	}
	if m.Role == chat.Assistant {
		m.Reasoning = r.thought.String()
		r.thought.Reset()
	}
	r.add(it, m)
	return nil
}

// reasoning keeps the text of a reasoning item. Responses of this server have it in content, and in encrypted_content
// if the client asked for it. Others have a summary, if anything.
func (r *reader) reasoning(it Item) error {
	thought := it.text("content") + joined(it.list("content"))
	if thought == "" {
		thought = Reasoning.open(it)
	}
	if thought == "" {
		thought = joined(it.list("summary"))
	}
	r.thought.WriteString(thought)
	return nil
}

// joined returns the texts of parts.
func joined(parts []jinja.Value) string {
	var b strings.Builder
	for _, p := range parts {
		if d, ok := p.(*jinja.Dict); ok {
			b.WriteString(text(d, "text"))
		}
	}
	return b.String()
}

// call adds a call to the message before it if that is the model's, unless there is reasoning in between.
func (r *reader) call(it Item, id, name string, arguments jinja.Value) {
	if last := len(r.Messages) - 1; last < 0 || r.Messages[last].Role != chat.Assistant || r.thought.Len() > 0 {
		r.add(it, chat.Message{Role: chat.Assistant, Null: true, Reasoning: r.thought.String()})
		r.thought.Reset()
	}
	m := &r.Messages[len(r.Messages)-1]
	m.ToolCalls = append(m.ToolCalls, chat.NewCall(id, name, arguments))
}

func (r *reader) functionCall(it Item) error {
	arguments, _ := it.Get("arguments")
	r.call(it, it.text("call_id"), r.set.OfferedName(it.text("namespace"), it.text("name")), arguments)
	return nil
}

func (r *reader) customCall(it Item) error {
	name := r.set.OfferedName(it.text("namespace"), it.text("name"))
	r.call(it, it.text("call_id"), name, tools.Arguments(it.text("input")))
	return nil
}

func (r *reader) output(it Item) error { return r.result(it, "output") }

// result adds the result of a call: a text, a list of parts, or another value as JSON.
func (r *reader) result(it Item, member string) error {
	v, _ := it.Get(member)
	m := chat.Message{Role: roleTool, ToolCallID: it.text("call_id")}
	if m.ToolCallID == "" {
		m.ToolCallID = it.text("id") // of a call of the local shell
	}
	if v == nil {
		m.Content = it.text("status") // of a patch without a message
		r.add(it, m)
		return nil
	}
	untyped := func(p chat.Part) bool { return p.Type == "" }
	if err := m.SetContent(v); err != nil || slices.ContainsFunc(m.Parts, untyped) {
		text, err := jinja.EncodeJSON(v)
		if err != nil {
			return wire.BadParam(it.At+"."+member, "%v", err)
		}
		m.Content, m.Parts = text, nil
	}
	r.add(it, m)
	return nil
}

// summary adds what this server wrote about the conversation so far.
func (r *reader) summary(it Item) error {
	if text := Summary.open(it); text != "" {
		r.add(it, chat.Message{Role: "user", Content: "Summary of the conversation so far:\n\n" + text})
	}
	return nil
}

// framing are the members of a call that say nothing about what is called.
var framing = []string{
	"type", "id", "call_id", "status", "caller", "created_by", "pending_safety_checks", "environment",
}

// rest returns the members of a call that say what is called.
func (it Item) rest() *jinja.Dict {
	d := jinja.NewDict()
	it.Each(func(k, v jinja.Value) bool {
		if key, _ := k.(string); !slices.Contains(framing, key) && v != nil {
			d.Put(key, v)
		}
		return true
	})
	return d
}
