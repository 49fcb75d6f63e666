package modelfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// MaxSize bounds a Modelfile in bytes. Only license texts make one large.
const MaxSize = 64 << 20

// Parse parses a Modelfile. Messages refer to it by name.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > MaxSize {
		return nil, &Error{File: name, Msg: fmt.Sprintf("not a Modelfile: larger than %d MiB", MaxSize>>20)}
	}
	found := filekind.Of(data, int64(len(data)))
	if wrong := found.Wrong(filekind.Empty, filekind.Ranks); wrong != "" {
		return nil, &Error{File: name, Msg: "not a Modelfile: " + wrong}
	}
	text, err := decode(name, data)
	if err != nil {
		return nil, err
	}
	p := newParser(name, text)
	for p.next < len(p.lines) {
		if err := p.command(); err != nil {
			return nil, err
		}
	}
	if len(p.file.All(From)) == 0 {
		return nil, &Error{File: name, Msg: "no FROM line: it names the source of the model"}
	}
	return p.file, nil
}

type parser struct {
	file  *File
	lines []string
	ends  []byte // of lines but the last: LF, or CR, which quoted texts keep
	next  int    // next line to read
}

func newParser(name, text string) *parser {
	p := &parser{file: &File{Name: name}}
	for {
		i := strings.IndexAny(text, "\n\r")
		if i < 0 {
			p.lines = append(p.lines, text)
			return p
		}
		p.lines, p.ends = append(p.lines, text[:i]), append(p.ends, text[i])
		text = text[i+1:]
	}
}

// errorAt returns an error about the text at a byte offset of a line.
func (p *parser) errorAt(line, at int, msg, text string) error {
	column := 1 + utf8.RuneCountInString(p.lines[line][:at])
	return &Error{File: p.file.Name, Line: line + 1, Col: column, Msg: msg, Text: text}
}

// command parses the next command, which may span several lines.
func (p *parser) command() error {
	n := p.next
	line := p.lines[n]
	p.next++
	at := skipBlanks(line, 0)
	if at == len(line) || line[at] == '#' {
		return nil
	}
	word, rest := wordAt(line, at)
	c := Command{Name: strings.ToUpper(word), Line: n + 1, Col: 1 + utf8.RuneCountInString(line[:at])}
	if !slices.Contains(commands, c.Name) {
		return p.errorAt(n, at, "unknown command (known: "+strings.Join(commands, ", ")+")", word)
	}
	if c.Name == Parameter || c.Name == Message {
		keyAt := skipBlanks(line, rest)
		c.Key, rest = wordAt(line, keyAt)
		if c.Key == "" {
			what := "a parameter name"
			if c.Name == Message {
				what = "a role (" + strings.Join(roles, ", ") + ")"
			}
			return p.errorAt(n, at, c.Name+" needs "+what+" and a value", trim(line[at:]))
		}
		if err := p.checkKey(n, keyAt, c); err != nil {
			return err
		}
	}
	valueAt := skipBlanks(line, rest)
	if valueAt == len(line) {
		return p.errorAt(n, at, c.Name+" needs a value", trim(line[at:]))
	}
	value, err := p.value(n, valueAt)
	if err != nil {
		return err
	}
	c.Value = value
	if msg := checkValue(c); msg != "" {
		text := value
		if text == "" {
			text = trim(line[valueAt:])
		}
		return p.errorAt(n, valueAt, msg, text)
	}
	p.file.Commands = append(p.file.Commands, c)
	return nil
}

// value parses the value that starts at byte offset at of line n.
func (p *parser) value(n, at int) (string, error) {
	line := p.lines[n]
	for _, quote := range []string{`"""`, `"`} {
		if strings.HasPrefix(line[at:], quote) {
			return p.quoted(n, at, quote)
		}
	}
	return trim(line[at:]), nil
}

// quoted parses a text whose opening quote is at byte offset at of line n. The text ends at the first line that ends
// with the quote.
func (p *parser) quoted(n, at int, quote string) (string, error) {
	var b strings.Builder
	rest := p.lines[n][at+len(quote):]
	for i := n; ; {
		if body, ok := strings.CutSuffix(strings.TrimRight(rest, blanks), quote); ok {
			p.next = i + 1
			b.WriteString(body)
			return b.String(), nil
		}
		b.WriteString(rest)
		if i < len(p.ends) {
			b.WriteByte(p.ends[i])
		}
		i++
		// A missing quote must not swallow the commands that follow.
		if i == len(p.lines) || (len(quote) == 1 && startsCommand(p.lines[i])) {
			return "", p.errorAt(n, at, "the quote "+quote+" is not closed; the closing quote must end a line",
				trim(p.lines[n][at:]))
		}
		rest = p.lines[i]
	}
}

// startsCommand reports whether a line starts with a command in upper case.
func startsCommand(line string) bool {
	w, end := wordAt(line, skipBlanks(line, 0))
	return end < len(line) && slices.Contains(commands, w)
}

func (p *parser) checkKey(n, at int, c Command) error {
	if c.Name == Message {
		if !slices.Contains(roles, c.Key) {
			return p.errorAt(n, at, "unknown role (known: "+strings.Join(roles, ", ")+")", c.Key)
		}
		return nil
	}
	if _, ok := parameters.Lookup(c.Key); !ok {
		return p.errorAt(n, at, "unknown parameter (known: "+strings.Join(parameters.Names(), ", ")+")", c.Key)
	}
	return nil
}

var version = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$`)

// checkValue returns the problem with a command's value, or "".
func checkValue(c Command) string {
	switch c.Name {
	case From, Adapter, Draft, Renderer, Parser:
		if trim(c.Value) == "" || strings.Contains(c.Value, "\n") {
			return c.Name + " needs a value of one line"
		}
	case Requires:
		if !version.MatchString(c.Value) {
			return "REQUIRES needs a version such as 0.19.0"
		}
	case Parameter:
		_, msg := parameters.Parse(c.Key, c.Value)
		return msg
	}
	return ""
}

func skipBlanks(line string, at int) int {
	return at + len(line[at:]) - len(strings.TrimLeft(line[at:], blanks))
}

// wordAt returns the word at a byte offset, and the offset of its end.
func wordAt(line string, at int) (string, int) {
	end := strings.IndexAny(line[at:], blanks)
	if end < 0 {
		end = len(line) - at
	}
	return line[at : at+end], at + end
}
