package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// sessionCommand is a slash command of a session. Its name has one or two words.
type sessionCommand struct {
	name, arguments, help string
	run                   func(s *session, ctx context.Context, rest string) error
}

// errLeave ends a session.
var errLeave = errors.New("leave")

// sessionCommands lists the commands in the order of the help. It is a function because the help command refers to it.
func sessionCommands() []sessionCommand {
	return append(append(sessionSettings(), sessionParts()...),
		sessionCommand{"/load", "NAME", "switch to another model or a saved session", (*session).loadCommand},
		sessionCommand{"/save", "NAME", "save the model with the settings and the messages", (*session).save},
		sessionCommand{"/clear", "", "clear the conversation", (*session).clearCommand},
		sessionCommand{"/help", "", "show this list (also /?)", (*session).helpCommand},
		sessionCommand{"/bye", "", "leave (also Ctrl-D)", (*session).bye},
	)
}

func (s *session) loadCommand(ctx context.Context, rest string) error {
	if err := oneWord(rest, "/load NAME"); err != nil {
		return err
	}
	return s.load(ctx, rest)
}

func (s *session) clearCommand(_ context.Context, rest string) error {
	s.clear()
	return noWords(rest, "/clear")
}

func (s *session) helpCommand(context.Context, string) error { return s.help("") }

func (s *session) bye(context.Context, string) error {
	return errLeave
}

// sessionAliases are alternative names of commands.
var sessionAliases = map[string]string{"/?": "/help", "/exit": "/bye", "/quit": "/bye"}

// runCommand executes text if it is a slash command, and reports whether it is one. A path is not a command.
func (s *session) runCommand(ctx context.Context, text string) (bool, error) {
	first, rest := cutWord(text)
	if !strings.HasPrefix(first, "/") {
		return false, nil
	}
	if alias, ok := sessionAliases[first]; ok {
		first = alias
	}
	group := false
	for _, c := range sessionCommands() {
		name, sub, _ := strings.Cut(c.name, " ")
		if name != first {
			continue
		}
		if sub == "" {
			return true, c.run(s, ctx, rest)
		}
		group = true
		if word, rest := cutWord(rest); word == sub {
			return true, c.run(s, ctx, rest)
		}
	}
	switch word, _ := cutWord(rest); {
	case group && word == "":
		return true, s.help(first)
	case group:
		return true, fmt.Errorf("unknown command %q; %s lists the commands", first+" "+word, first)
	case strings.Contains(first[1:], "/") || strings.Contains(first, "."):
		return false, nil
	}
	return true, fmt.Errorf("unknown command %q; /? lists the commands. To send it as a message, put a space first", first)
}

// cutWord splits a text after its first word.
func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t\n"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

func oneWord(rest, usage string) error {
	if word, more := cutWord(rest); word == "" || more != "" {
		return fmt.Errorf("usage: %s", usage)
	}
	return nil
}

func noWords(rest, usage string) error {
	if rest != "" {
		return fmt.Errorf("usage: %s", usage)
	}
	return nil
}

// sessionKeys are the keys and notations that the help lists.
var sessionKeys = [][2]string{
	{`"""`, "start and end of a message of several lines"},
	{"Alt-Enter", "line break in a message; pasted text keeps its lines"},
	{"Up, Down", "earlier messages, also of past sessions, except those that begin with a space"},
	{"./cat.png", "a path with a slash shows a picture to a vision model"},
	{"Ctrl-C", "stop the response"},
}

// help lists the commands of a group, or all commands and the keys.
func (s *session) help(group string) error {
	w := cli.NewTable(s.Out)
	for _, c := range sessionCommands() {
		if name, _, _ := strings.Cut(c.name, " "); group == "" || name == group {
			w.Row(strings.TrimSpace(c.name+" "+c.arguments), c.help)
		}
	}
	if group == "" {
		for _, k := range sessionKeys {
			w.Row(k[0], k[1])
		}
	}
	return w.Flush()
}

// save stores the session as a model: the same weights with the session's settings and messages.
func (s *session) save(ctx context.Context, rest string) error {
	if err := oneWord(rest, "/save NAME"); err != nil {
		return err
	}
	name, err := manifest.ParseName(rest)
	if err != nil {
		return err
	}
	from := s.entry.Name
	from.Digest = s.entry.Digest // the name may refer to another model by now
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: from.String()}}}
	add := func(c modelfile.Command) { file.Commands = append(file.Commands, c) }
	if s.system != s.style.Texts.System {
		add(modelfile.Command{Name: modelfile.System, Value: s.system})
	}
	for _, key := range slices.Sorted(maps.Keys(s.parameters)) {
		for _, v := range settings.ParameterValues(s.parameters[key]) {
			add(modelfile.Command{Name: modelfile.Parameter, Key: key, Value: v})
		}
	}
	if len(s.messages) > 0 { // these replace all messages of the image
		for _, m := range s.style.Texts.Messages {
			add(modelfile.Command{Name: modelfile.Message, Key: m.Role, Value: m.Content})
		}
	}
	for _, m := range s.messages {
		add(modelfile.Command{Name: modelfile.Message, Key: m.Role, Value: m.Content})
	}
	if len(s.pictures) > 0 {
		s.Note("note: pictures are not saved")
	}
	result, err := convert.Create(ctx, s.store, name, file, convert.Options{Version: cli.Version})
	if err != nil {
		return err
	}
	for _, w := range result.Warnings {
		s.Note("note: %s", w)
	}
	_, err = fmt.Fprintf(s.Out, "saved %s@%s\n", result.Name, result.Digest)
	return err
}

// setParameter implements /set parameter.
func (s *session) setParameter(_ context.Context, rest string) error {
	name, value := cutWord(rest)
	if name == "" {
		_, err := io.WriteString(s.Out, cli.ParameterHelp())
		return err
	}
	p, ok := parameters.Lookup(name)
	if !ok {
		return fmt.Errorf("unknown parameter %q; /set parameter lists them", name)
	}
	values := []string{value}
	if p.Type == parameters.Strings {
		values = words(value)
	}
	file := &modelfile.File{}
	for _, v := range values {
		file.Commands = append(file.Commands, modelfile.Command{Name: modelfile.Parameter, Key: name, Value: v})
	}
	set, notes, err := file.Params()
	if err == nil && len(values) == 0 {
		err = fmt.Errorf("usage: /set parameter %s TEXT", name)
	}
	if err != nil {
		return err
	}
	for _, n := range notes {
		s.Note("note: %s", n)
	}
	plain, err := plainParameters(set)
	maps.Copy(s.parameters, plain)
	return err
}

// words splits a text into words. Words with spaces are in double quotes.
func words(text string) (list []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if rest, ok := strings.CutPrefix(text, `"`); ok {
			if word, after, closed := strings.Cut(rest, `"`); closed {
				list, text = append(list, word), after
				continue
			}
		}
		var word string
		word, text = cutWord(text)
		list = append(list, word)
	}
	return list
}
