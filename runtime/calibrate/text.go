package calibrate

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ingotml/ingot/runtime/processor"
	"github.com/opencontainers/go-digest"
)

// builtin are the built-in texts: prose, code, and many scripts and dialogues. They were written for this project, and
// are under its license, Apache 2.0. prose.txt and code.txt are made from its documentation and sources by gen.sh.
//
//go:embed text/*.txt
var builtin embed.FS

// Message is a message of a conversation.
type Message struct{ Role, Content string }

// Document is a text to read.
type Document struct {
	Text     string
	Rendered bool // by a chat template, so special tokens are part of the text
}

// Builtin returns the built-in documents by kind. render renders a conversation by the model's chat template; nil means
// that the model has none, and conversations are read as plain text.
func Builtin(ctx context.Context, render func(context.Context, []Message) (string, error)) ([][]Document, error) {
	names, err := fs.Glob(builtin, "text/*.txt")
	if err != nil {
		return nil, err
	}
	var kinds [][]Document
	for _, name := range names {
		data, err := builtin.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var kind []Document
		for _, text := range strings.Split(string(data), separator) {
			d := Document{Text: text}
			if path.Base(name) == "dialogue.txt" && render != nil {
				if d.Text, err = render(ctx, conversation(text)); err != nil {
					return nil, fmt.Errorf("the chat template: %w", err)
				}
				d.Rendered = true
			}
			kind = append(kind, d)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// Files returns the contents of files as documents, each of a kind of its own.
func Files(texts []string) (kinds [][]Document) {
	for _, text := range texts {
		kinds = append(kinds, []Document{{Text: text}})
	}
	return kinds
}

// Digest identifies documents.
func Digest(kinds [][]Document) digest.Digest {
	d := digest.Canonical.Digester()
	for _, kind := range kinds {
		for _, doc := range kind {
			fmt.Fprintf(d.Hash(), "%d %v\n%s", len(doc.Text), doc.Rendered, doc.Text)
		}
	}
	return d.Digest()
}

// Sample returns the beginning of each built-in text, about n bytes together: a text to compare models over while types
// are searched, which shares nothing with that of comparisons.
func Sample(n int) string {
	names, _ := fs.Glob(builtin, "text/*.txt") // the pattern is good
	var sample strings.Builder
	for _, name := range names {
		data, _ := builtin.ReadFile(name) // it exists
		text := strings.ReplaceAll(string(data), separator, "\n")
		text = text[:min(n/len(names), len(text))]
		if at := strings.LastIndexByte(text, '\n'); at > 0 {
			text = text[:at]
		}
		sample.WriteString(strings.ToValidUTF8(text, "") + "\n\n")
	}
	return sample.String()
}

// separator is between documents of a file.
const separator = "\n=====\n"

// conversation parses lines that start with a role; other lines continue a message.
func conversation(text string) (list []Message) {
	for _, line := range strings.Split(text, "\n") {
		role, content, ok := strings.Cut(line, ": ")
		switch {
		case ok && (role == "user" || role == "assistant"):
			list = append(list, Message{role, content})
		case len(list) > 0:
			list[len(list)-1].Content += "\n" + line
		}
	}
	return list
}

// Windows encodes documents and divides them into windows. It takes windows from each kind in turn. The tokens that the
// tokenizer puts before a text are before each window, except for those of rendered documents, whose first window has
// them already.
func Windows(ctx context.Context, p *processor.Processor, kinds [][]Document) ([][]int32, error) {
	if p.Tokenizer() == nil {
		return nil, fmt.Errorf("%w: the model has no tokenizer", ErrText)
	}
	limit := min(Window, p.Context())
	var lists [][][]int32
	for _, kind := range kinds {
		var list [][]int32
		for _, d := range kind {
			windows, err := divide(ctx, p, d, limit)
			if err != nil {
				return nil, err
			}
			list = append(list, windows...)
		}
		lists = append(lists, list)
	}
	var out [][]int32
	for i := 0; ; i++ {
		n := len(out)
		for _, list := range lists {
			if i < len(list) {
				out = append(out, list[i])
			}
		}
		if len(out) == n {
			return out, nil
		}
	}
}

// least is the length of the shortest window that is worth reading.
const least = 16

func divide(ctx context.Context, p *processor.Processor, d Document, limit int) (windows [][]int32, err error) {
	var begin, tokens []int32
	if d.Rendered {
		tokens, err = p.EncodeRendered(ctx, d.Text, false)
	} else {
		if bos, ok := p.Tokenizer().BOS(); ok {
			if empty, err := p.Encode(ctx, ""); err == nil && len(empty) > 0 && empty[0] == bos {
				begin = []int32{bos}
			}
		}
		tokens, err = p.Tokenizer().Encode(ctx, d.Text, false)
	}
	if err != nil {
		return nil, err
	}
	for len(tokens) > 0 {
		n := min(limit-len(begin), len(tokens))
		if n >= least {
			windows = append(windows, append(append([]int32{}, begin...), tokens[:n]...))
		}
		tokens = tokens[n:]
	}
	return windows, nil
}
