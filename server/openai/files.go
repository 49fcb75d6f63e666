package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/pdf"
	"github.com/ingotml/ingot/server/wire"
)

// file returns the text of a part with a file, or a note that stands for it: {"filename", "file_data"} in responses,
// and the same as a member "file" in chat completions.
func (s shower) file(part chat.Part, at string) (string, error) {
	if inner, ok := part.Fields.Get("file"); ok {
		at += ".file"
		part.Fields, _ = inner.(*jinja.Dict)
	}
	name := part.Field("filename")
	what := strings.TrimSpace("file " + wire.Clip(name))
	data := part.Field("file_data")
	switch {
	case data != "":
	case part.Field("file_url") != "":
		return s.refuse(at+".file_url", what, errors.New("the server does not fetch files: send file_data"))
	case part.Field("file_id") != "":
		return s.refuse(at+".file_id", what, errors.New("the server stores no files: send file_data"))
	default:
		return s.refuse(at+".file_data", what, errors.New("is missing"))
	}
	content, err := fileData(data)
	if err != nil {
		return s.refuse(at+".file_data", what, err)
	}
	text, err := s.pdf(content)
	switch {
	case err == nil:
	case fails(err):
		return "", err
	case !errors.Is(err, pdf.ErrNoPDF):
		return server.Omitted(what, err.Error()), nil
	case isText(content):
		text = string(content)
	default:
		return server.Omitted(what, "it is neither text nor a PDF"), nil
	}
	return cmp.Or(name, "file") + ":\n" + text, nil
}

// fails reports whether an error is about the server rather than about what it reads.
func fails(err error) bool {
	return errors.Is(err, runtime.ErrBusy) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// fileData decodes a file's content: base64, alone or in a data URL.
func fileData(text string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		kind, data, ok := strings.Cut(rest, ",")
		if !ok || !strings.HasSuffix(kind, ";base64") {
			return nil, errors.New("is a data URL without base64")
		}
		text = data
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("is not valid base64")
	}
	return content, nil
}

// isText reports whether a file's content is text, whatever its name or type says.
func isText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }
