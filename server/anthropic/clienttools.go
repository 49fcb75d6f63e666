package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tools of these types are Anthropic's, but the client runs them. Claude knows them; another model is offered the
// descriptions and schemas below. A type ends with a date; types of all dates are known.
const (
	bashTool     = "bash"
	editorTool   = "text_editor"
	memoryTool   = "memory"
	computerTool = "computer"
)

// defaultNames are the names of tools whose request has none.
var defaultNames = map[string]string{bashTool: "bash", editorTool: "str_replace_based_edit_tool", memoryTool: "memory",
	computerTool: "computer"}

// kindOf returns a type without its date, or "" if it has none.
func kindOf(kind string) string {
	name, date, ok := cutLast(kind, "_")
	if !ok || len(date) != len("20250124") || strings.Trim(date, "0123456789") != "" {
		return ""
	}
	return name
}

// cutLast cuts a text around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// knownTool is what a model is told about a tool that it does not know by its type.
type knownTool struct {
	description string
	schema      json.RawMessage
	family      bool
}

// known returns what a model is told about a tool of a type that clients run; nil: it is none of them.
func (t toolParam) known() *knownTool {
	if f := familyOf(t.Type); f != nil {
		return f.tool(t, nil)
	}
	_, date, _ := cutLast(t.Type, "_")
	switch kindOf(t.Type) {
	case bashTool:
		return &knownTool{"Runs a command in a bash session, which keeps its state between calls, and returns its output.",
			schemaOf([]string{"command", "restart"}, nil), false}
	case editorTool:
		return t.editor(date)
	case memoryTool:
		return &knownTool{"Stores and looks up notes in files below /memories, which stay for later conversations. " +
			"Commands: view (a file, or the list of a directory: path, view_range), create (path, file_text), str_replace " +
			"(path, old_str, new_str), insert (path, insert_line, insert_text), delete (path), rename (old_path, new_path).",
			schemaOf([]string{"command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text",
				"old_path", "new_path"}, map[string][]string{
				"command": {"view", "create", "str_replace", "insert", "delete", "rename"}}, "command"), false}
	case computerTool:
		return t.computer(date)
	}
	return nil
}

// editor describes the tool that views and edits files. Its inputs were named otherwise before April 2025.
func (t toolParam) editor(date string) *knownTool {
	commands, inserted, undo := []string{"view", "create", "str_replace", "insert"}, "insert_text", ""
	if date < "20250429" {
		commands, inserted, undo = append(commands, "undo_edit"), "new_str", ", undo_edit (takes back the last edit: path)"
	}
	most := ""
	if t.MaxCharacters > 0 {
		most = fmt.Sprintf(" A file is shown up to %d characters.", t.MaxCharacters)
	}
	return &knownTool{"Views, creates and edits files. Commands: view (a file, or the list of a directory: path, " +
		"view_range), create (path, file_text), str_replace (replaces text that occurs exactly once: path, old_str, " +
		"new_str), insert (after a line: path, insert_line, " + inserted + ")" + undo + "." + most,
		schemaOf([]string{"command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", inserted},
			map[string][]string{"command": commands}, "command", "path"), false}
}

// computer describes the tool that uses a screen, a mouse and a keyboard. Its actions grew over time.
func (t toolParam) computer(date string) *knownTool {
	without := []string{"zoom"}
	switch {
	case date >= "20251124" && t.Zoom:
		without = nil
	case date < "20250124":
		without = append(without, "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click")
	}
	tool := familyOf("computer_toolset_").tool(t, without)
	tool.family = false
	if t.Width > 0 && t.Height > 0 {
		tool.description += fmt.Sprintf(" The screen has %d x %d pixels.", t.Width, t.Height)
	}
	return tool
}

// properties are the schemas of all inputs, by their names.
var properties = map[string]string{
	"command":          `{"type":"string","description":"The command."}`,
	"restart":          `{"type":"boolean","description":"Start a new session instead of running a command."}`,
	"path":             `{"type":"string","description":"Path of the file or directory."}`,
	"old_path":         `{"type":"string","description":"Path to rename."}`,
	"new_path":         `{"type":"string","description":"The new path."}`,
	"view_range":       `{"type":"array","items":{"type":"integer"},"description":"First and last line; -1: the end."}`,
	"file_text":        `{"type":"string","description":"Content of the new file."}`,
	"old_str":          `{"type":"string","description":"Text to replace, as it is in the file."}`,
	"new_str":          `{"type":"string","description":"The new text."}`,
	"insert_line":      `{"type":"integer","description":"Line after which to insert; 0: the beginning."}`,
	"insert_text":      `{"type":"string","description":"Text to insert."}`,
	"coordinate":       `{"type":"array","items":{"type":"integer"},"description":"x and y in pixels from the top left."}`,
	"start_coordinate": `{"type":"array","items":{"type":"integer"},"description":"x and y where a drag begins."}`,
	"region":           `{"type":"array","items":{"type":"integer"},"description":"x0, y0, x1 and y1 in pixels."}`,
	"text":             `{"type":"string","description":"Text to type, keys such as ctrl+s, or a script."}`,
	"repeat":           `{"type":"integer","description":"How often to press the key."}`,
	"duration":         `{"type":"number","description":"Seconds."}`,
	"scroll_direction": `{"type":"string","enum":["up","down","left","right"]}`,
	"scroll_amount":    `{"type":"integer","description":"Clicks of the wheel."}`,
	"url":              `{"type":"string","description":"An address, or back, forward or reload."}`,
	"tab_id":           `{"type":"string","description":"A tab; without it, the active one."}`,
	"target": `{"type":"object","description":"A point {\"type\":\"coordinate\",\"x\":..,\"y\":..} or an element ` +
		`{\"type\":\"ref\",\"ref\":..} that read_page or find named."}`,
	"from": `{"type":"object","description":"The point where a drag begins: ` +
		`{\"type\":\"coordinate\",\"x\":..,\"y\":..}"}`,
	"modifiers":    `{"type":"string","description":"Keys to hold, such as ctrl+shift."}`,
	"query":        `{"type":"string","description":"What to find."}`,
	"value":        `{"type":["string","number","boolean"],"description":"The value to set."}`,
	"paths":        `{"type":"array","items":{"type":"string"},"description":"Paths of files."}`,
	"document_ids": `{"type":"array","items":{"type":"string"},"description":"Files that were staged."}`,
	"ref":          `{"type":"string","description":"An element whose part of the page to read."}`,
	"filter":       `{"type":"string","enum":["all","interactive"]}`,
	"depth":        `{"type":"integer","description":"Levels of the tree to read."}`,
}

// schemaOf returns the schema of an object with some of the properties. choices are the values of those that have a
// list.
func schemaOf(names []string, choices map[string][]string, required ...string) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		if i > 0 {
			b.WriteByte(',')
		}
		schema := properties[name]
		if list, ok := choices[name]; ok {
			schema = `{"type":"string","enum":` + quoted(list) + `}`
		}
		fmt.Fprintf(&b, "%q:%s", name, schema)
	}
	b.WriteString("}")
	if len(required) > 0 {
		b.WriteString(`,"required":` + quoted(required))
	}
	b.WriteString("}")
	return json.RawMessage(b.String())
}

// quoted returns names as a JSON list.
func quoted(names []string) string { return `["` + strings.Join(names, `","`) + `"]` }
