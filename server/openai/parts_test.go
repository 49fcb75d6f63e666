package openai

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/pdf"
	"github.com/ingotml/ingot/server/servertest"
)

// sighted is the viewer of a model with vision. Pictures that begin with AAAA can be decoded, and one file is a PDF.
var sighted = viewer{
	note: func(bool) (string, error) { return "", nil },
	check: func(p runtime.Picture) error {
		if len(p.Data) != 3 {
			return errors.New("picture 1: bad")
		}
		return nil
	},
	pdf: func(data []byte) (string, error) {
		switch string(data) {
		case "%PDF":
			return "[page 1]", nil
		case "%PDF locked":
			return "", errors.New("the PDF needs a password")
		case "%PDF busy":
			return "", runtime.ErrBusy
		}
		return "", pdf.ErrNoPDF
	},
}

// What a model is shown of a part, if the message is the newest one or part of the history.
func TestParts(t *testing.T) {
	file := func(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }
	const picture = `{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`
	for _, c := range []struct {
		part, newest, history string // texts; errors begin with the path
		blind                 bool   // the model cannot see
	}{
		{part: `{"type":"text","text":"a"}`, newest: "<a>", history: "<a>"},
		{part: `{"type":"refusal","refusal":"no"}`, newest: "<no>", history: "<no>"},
		{part: `{"type":"thinking","thinking":"hm"}`, newest: "<> hm", history: "<> hm"},
		{part: `{"type":"reasoning","text":"hm"}`, newest: "<> hm", history: "<> hm"},
		{part: picture, newest: "<\n> 1", history: "<\n> 1"},
		{part: picture, blind: true, newest: "m.content[1].image_url: cannot see", history: "<\n[note]\n>"},
		{part: `{"type":"image_url","image_url":{"url":"http://a/b.png"}}`,
			newest:  "m.content[1].image_url: the server does not fetch images: send a data URL",
			history: "<\n[image omitted: the server does not fetch images: send a data URL]\n>"},
		{part: `{"type":"input_image","file_id":"f"}`,
			newest:  "m.content[1].image_url: the server stores no files: send a data URL",
			history: "<\n[image omitted: the server stores no files: send a data URL]\n>"},
		{part: `{"type":"image_url","image_url":{"url":"data:image/png;base64,!"}}`,
			newest:  "m.content[1].image_url: picture 1 is not valid base64: illegal base64 data at input byte 0",
			history: "<\n[image omitted: picture 1 is not valid base64: illegal base64 data at input byte 0]\n>"},
		{part: `{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,` + file("hi\n") + `"}`,
			newest: "<\na.txt:\nhi\n>", history: "<\na.txt:\nhi\n>"},
		{part: `{"type":"file","file":{"file_data":"` + file("é") + `"}}`, newest: "<\nfile:\né\n>",
			history: "<\nfile:\né\n>"},
		{part: `{"type":"input_file","filename":"a.bin","file_data":"` + file("\x00\x01") + `"}`,
			newest:  "<\n[file a.bin omitted: it is neither text nor a PDF]\n>",
			history: "<\n[file a.bin omitted: it is neither text nor a PDF]\n>"},
		{part: `{"type":"file","file":{"filename":"a.pdf","file_data":"` + file("%PDF") + `"}}`,
			newest: "<\na.pdf:\n[page 1]\n>", history: "<\na.pdf:\n[page 1]\n>"},
		{part: `{"type":"input_file","file_data":"` + file("%PDF locked") + `"}`,
			newest:  "<\n[file omitted: the PDF needs a password]\n>",
			history: "<\n[file omitted: the PDF needs a password]\n>"},
		{part: `{"type":"input_file","file_data":"` + file("%PDF busy") + `"}`, newest: runtime.ErrBusy.Error(),
			history: runtime.ErrBusy.Error()},
		{part: `{"type":"input_image","image_url":"data:image/png;base64,AAAAAAAA"}`,
			newest: "m.content[1].image_url: picture 1: bad", history: "<\n[image omitted: picture 1: bad]\n>"},
		{part: `{"type":"input_file","file_data":"data:text/plain,a"}`,
			newest:  "m.content[1].file_data: is a data URL without base64",
			history: "<\n[file omitted: is a data URL without base64]\n>"},
		{part: `{"type":"file","file":{"file_data":"!"}}`, newest: "m.content[1].file.file_data: is not valid base64",
			history: "<\n[file omitted: is not valid base64]\n>"},
		{part: `{"type":"input_file","file_url":"http://a"}`,
			newest:  "m.content[1].file_url: the server does not fetch files: send file_data",
			history: "<\n[file omitted: the server does not fetch files: send file_data]\n>"},
		{part: `{"type":"file","file":{"file_id":"f"}}`,
			newest:  "m.content[1].file.file_id: the server stores no files: send file_data",
			history: "<\n[file omitted: the server stores no files: send file_data]\n>"},
		{part: `{"type":"file"}`, newest: "m.content[1].file_data: is missing", history: "<\n[file omitted: is missing]\n>"},
		{part: `{"type":"input_audio"}`,
			newest:  "m.content[1]: part type input_audio is not supported: use text, images or files",
			history: "<\n[input_audio omitted: this server does not show such parts]\n>"},
	} {
		view := sighted
		view.note = func(newest bool) (string, error) {
			switch {
			case !c.blind:
				return "", nil
			case newest:
				return "", errors.New("cannot see")
			}
			return "[note]", nil
		}
		for _, newest := range []bool{true, false} {
			m := servertest.Decode[chat.Message](t,
				`{"role":"user","content":[{"type":"text","text":"<"},`+c.part+`,{"type":"text","text":">"}]}`)
			pictures, err := shower{"m", newest, view}.message(&m, nil)
			got, want := m.Content, c.history
			if newest {
				want = c.newest
			}
			switch {
			case err != nil:
				got = err.Error()
			case m.Reasoning != "":
				got += " " + m.Reasoning
			case len(pictures) == 1:
				got += " 1"
			}
			if got != want {
				t.Errorf("%s, newest %v:\n%q, want\n%q", c.part, newest, got, want)
			}
		}
	}
}

// A coding client's history goes on with a model that cannot see.
func TestPicturesInHistory(t *testing.T) {
	f := serve(t, nil)
	const picture = `{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":[{"role":"user","content":[`+picture+`]},`+
		`{"type":"function_call","call_id":"1","name":"view","arguments":"{}"},{"type":"function_call_output",`+
		`"call_id":"1","output":[{"type":"input_text","text":"a.png"},`+picture+`]}]}`, 200)
	const note = "[image omitted: this model cannot see pictures]"
	want := "system:brief|user:" + note + `|assistant:{"name": "view", "arguments": {}}|tool:a.png` + "\n" + note +
		"|think=-"
	if got := f.Prompt(t); got != want {
		t.Errorf("prompt %q", got)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":[{"role":"user","content":[`+picture+`]}]}`, 400,
		`"param":"input[0].content[0].image_url"`, "cannot see pictures")
}

func TestTooManyPictures(t *testing.T) {
	part := chat.Part{Type: "image_url"}
	message := chat.Message{Role: "user", Parts: []chat.Part{part}}
	for _, newest := range []bool{true, false} {
		if _, _, err := (shower{"m", newest, sighted}).picture(part, "m", limits.Pictures); err == nil {
			t.Error("too many pictures are decoded")
		}
	}
	if _, err := turns([]chat.Message{message, {Role: "user"}}, &prompt.Style{},
		func(int) string { return "m" }, sighted); err != nil {
		t.Errorf("a picture in the history: %v", err)
	}
}
