package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// viewer says what a model can be shown: functions of the server and the model.
type viewer struct {
	note  func(newest bool) (note string, err error) // [server.Model.PictureNote]
	check func(runtime.Picture) error                // whether a picture can be decoded
	pdf   func(data []byte) (string, error)          // text of a PDF file; pdf.ErrNoPDF: it is none
}

func (s *api) viewer(ctx context.Context, m *server.Model) viewer {
	return viewer{m.PictureNote, m.CheckPicture, func(data []byte) (string, error) { return s.core.PDFText(ctx, data) }}
}

// shower turns the content of a message into what the model can be shown. What it cannot be shown is an error in the
// newest message, if that is the user's. In other messages a note stands for it, so that the conversation can go on.
type shower struct {
	at     string // what errors call the message
	newest bool
	viewer
}

// shown is a part of a message for the model.
type shown struct {
	chat.Part
	own bool // a paragraph of its own, not a part of the surrounding text
}

// message normalizes a message's content to text and image parts, and appends its pictures to those of earlier
// messages. Content without pictures becomes a single text. Thinking becomes the message's reasoning.
func (s shower) message(m *chat.Message, pictures []runtime.Picture) ([]runtime.Picture, error) {
	if m.Parts == nil {
		return pictures, nil
	}
	var list []shown
	var thought strings.Builder
	thought.WriteString(m.Reasoning)
	seen := len(pictures)
	for i, p := range m.Parts {
		at := fmt.Sprintf("%s.content[%d]", s.at, i)
		switch p.Type {
		case "text", "input_text", "output_text", "summary_text":
			list = append(list, shown{chat.Part{Type: "text", Text: p.Text}, false})
		case "refusal":
			list = append(list, shown{chat.Part{Type: "text", Text: p.Field("refusal")}, false})
		case "thinking", "reasoning", "reasoning_text":
			thought.WriteString(cmp.Or(p.Field("thinking"), p.Field("reasoning"), p.Text))
		case "redacted_thinking":
		case "image_url", "input_image":
			picture, note, err := s.picture(p, at+".image_url", len(pictures))
			switch {
			case err != nil:
				return nil, err
			case note != "":
				list = append(list, shown{chat.Part{Type: "text", Text: note}, true})
			default:
				pictures = append(pictures, picture)
				list = append(list, shown{chat.Part{Type: "image"}, true})
			}
		case "input_file", "file":
			text, err := s.file(p, at)
			if err != nil {
				return nil, err
			}
			list = append(list, shown{chat.Part{Type: "text", Text: text}, true})
		default:
			if s.newest || p.Type == "" {
				return nil, wire.BadParam(at, "part type %s is not supported: use text, images or files", wire.Clip(p.Type))
			}
			note := server.Omitted(wire.Clip(p.Type), "this server does not show such parts")
			list = append(list, shown{chat.Part{Type: "text", Text: note}, true})
		}
	}
	var content strings.Builder
	m.Parts = make([]chat.Part, 0, len(list))
	for i, p := range list {
		text := content.String() // copies nothing
		if i > 0 && (p.own || list[i-1].own) && text != "" && !strings.HasSuffix(text, "\n") {
			content.WriteByte('\n')
		}
		content.WriteString(p.Text)
		m.Parts = append(m.Parts, p.Part)
	}
	m.Content, m.Reasoning = content.String(), thought.String()
	if len(pictures) == seen {
		m.Parts = nil // many templates support only text
	}
	return pictures, nil
}

// refuse returns an error about the newest message, or else a note.
func (s shower) refuse(at, what string, problem error) (note string, err error) {
	if s.newest {
		return "", wire.BadParam(at, "%v", problem)
	}
	return server.Omitted(what, problem.Error()), nil
}

// picture decodes the picture of a part, or returns a note that stands for it.
func (s shower) picture(part chat.Part, at string, id int) (p runtime.Picture, note string, err error) {
	note, err = s.note(s.newest)
	if err != nil {
		return p, "", wire.BadParam(at, "%v", err)
	}
	if note != "" {
		return p, note, nil
	}
	url := part.PictureURL()
	switch {
	case id >= limits.Pictures:
		return p, "", wire.BadParam(at, "too many pictures: a request may have at most %d", limits.Pictures)
	case url == "" && part.Field("file_id") != "":
		note, err = s.refuse(at, "image", errors.New("the server stores no files: send a data URL"))
	case !strings.HasPrefix(url, "data:"):
		note, err = s.refuse(at, "image", errors.New("the server does not fetch images: send a data URL"))
	default:
		var problem error
		if p, problem = server.DecodePicture(url, id); problem == nil {
			problem = s.check(p)
		}
		if problem != nil {
			note, err = s.refuse(at, "image", problem)
		}
	}
	return p, note, err
}
