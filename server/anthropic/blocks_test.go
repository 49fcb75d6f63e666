package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/pdf"
)

// plainStyle is that of a model with a template.
var plainStyle = &prompt.Style{Texts: &settings.Texts{},
	Templates: chat.One("{% for m in messages %}{{ m.content }}{% endfor %}")}

// seeing is the reader of a model with vision. A picture whose data begin with x is bad, and so is a PDF. One that
// begins with y needs a password.
var seeing = reader{
	note: func(bool) (string, error) { return "", nil },
	check: func(p runtime.Picture) error {
		if strings.HasPrefix(string(p.Data), "x") {
			return fmt.Errorf("picture %s: bad", p.Name)
		}
		return nil
	},
	pdf: func(b []byte) (string, error) {
		switch {
		case strings.HasPrefix(string(b), "x"):
			return "", pdf.ErrNoPDF
		case strings.HasPrefix(string(b), "y"):
			return "", pdf.ErrPassword
		}
		return "PDF:" + string(b), nil
	},
}

// translate returns a request's messages as lines of role, content and calls.
func translate(t *testing.T, body string, r reader) (string, prompt.Conversation, offers, error) {
	t.Helper()
	var q messagesRequest
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	c, o, err := q.conversation(plainStyle, r)
	var lines []string
	pictures := 0
	for _, m := range c.Messages {
		text := m.Content
		for _, p := range m.Parts {
			if p.Type == "image" {
				pictures++
				text += "<image>"
			}
		}
		for _, call := range m.ToolCalls {
			b, err := json.Marshal(chat.Message{Role: "x", ToolCalls: []chat.ToolCall{call}})
			if err != nil {
				t.Fatal(err)
			}
			_, args, _ := strings.Cut(string(b), `"arguments":`)
			text += "<" + call.Name + strings.TrimRight(args, "]}") + ">"
		}
		if m.Role == "tool" {
			text = m.Name + "=" + text
		}
		lines = append(lines, m.Role+":"+text)
	}
	if err == nil && pictures != len(c.Pictures) {
		t.Errorf("%s: %d places of pictures, %d pictures", body, pictures, len(c.Pictures))
	}
	return strings.Join(lines, "|"), c, o, err
}

// shownCase is a block, or messages, and what the model is shown.
type shownCase struct {
	Block, Messages json.RawMessage
	Shown           string
}

func cases(t testing.TB, file string) (list []shownCase) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil || len(list) < 10 {
		t.Fatalf("%d cases, %v", len(list), err)
	}
	return list
}

// Each block is shown as text, or a note stands for it: in the history, in a result, and in the model's own messages.
func TestBlocksShown(t *testing.T) {
	for _, c := range cases(t, "blocks.json") {
		block, want := string(c.Block), c.Shown
		shown := strings.NewReplacer("<image>", "").Replace(want)
		const tools = `{"tools":[{"name":"f"}],"messages":[`
		const next = `,{"role":"user","content":"go"}]}`
		history := tools + `{"role":"user","content":[` + block + `,{"type":"text","text":"."}]}` + next
		got, _, _, err := translate(t, history, seeing)
		text, _, _ := strings.Cut(got, "go")
		if image := strings.Contains(want, "<image>"); err != nil ||
			!strings.HasPrefix(text, "user:"+shown) || strings.Contains(got, "<image>") != image {
			t.Errorf("history: %s: %q, %v, want %q", block, got, err, want)
		}
		result := tools + `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[` + block + `]}]}]}`
		got, _, _, err = translate(t, result, seeing)
		if _, text, _ := strings.Cut(got, "tool:f="); err != nil || text != want {
			t.Errorf("result: %s: %q, %v, want %q", block, text, err, want)
		}
		beside := strings.TrimSuffix(result, `]}]}]}`) + `]},` + block + `]}]}`
		if _, _, _, err = translate(t, beside, seeing); err != nil {
			t.Errorf("beside a result: %s: %v", block, err)
		}
		model := tools + `{"role":"assistant","content":[` + block + `]},{"role":"user","content":"go"}]}`
		got, _, _, err = translate(t, model, seeing)
		if text, _, _ := strings.Cut(got, "|user:"); err != nil || text != "assistant:"+want {
			t.Errorf("model: %s: %q, %v, want %q", block, text, err, want)
		}
		if _, _, _, err := translate(t, tools+`{"role":"user","content":[`+block+`]}`+next, blind); err != nil {
			t.Errorf("without vision: %s: %v", block, err)
		}
	}
}

// Messages of odd shapes are translated as they are.
func TestShapes(t *testing.T) {
	for _, c := range cases(t, "shapes.json") {
		if got, _, _, err := translate(t, `{"messages":`+string(c.Messages)+`}`, seeing); err != nil || got != c.Shown {
			t.Errorf("%s: %q, %v, want %q", c.Messages, got, err, c.Shown)
		}
	}
	const user = `"messages":[{"role":"user","content":"a"}]}`
	got, _, _, err := translate(t, `{"system":[{"type":"text","text":"s"},{"type":"hologram"}],`+user, seeing)
	if err != nil || got != "system:s\n[hologram block omitted: the server cannot show it]|user:a" {
		t.Errorf("system: %q, %v", got, err)
	}
	const open, end = `{"type":"document","source":{"type":"content","content":[`, `]}}`
	deep := `{"role":"assistant","content":[` + strings.Repeat(open, 20) + `"x"` + strings.Repeat(end, 20) + `]}`
	got, _, _, err = translate(t, `{"messages":[`+deep+`,{"role":"user","content":"a"}]}`, seeing)
	if err != nil || !strings.Contains(got, "is nested too deep") {
		t.Errorf("deep: %q, %v", got, err)
	}
	many := strings.Repeat(`{"type":"image","source":{"type":"base64","data":"AAAA"}},`, limits.Pictures+1)
	if _, _, _, err := translate(t, `{"messages":[{"role":"user","content":[`+many+`"a"]}]}`, seeing); err == nil ||
		!strings.HasPrefix(err.Error(), "messages.0.content.64.source: too many pictures") {
		t.Errorf("many pictures: %v", err)
	}
	busy := seeing
	busy.pdf = func([]byte) (string, error) { return "", runtime.ErrBusy }
	const file = `{"role":"assistant","content":[{"type":"document","source":{"type":"base64","data":""}}]}`
	if _, _, _, err := translate(t, `{"messages":[`+file+`]}`, busy); !errors.Is(err, runtime.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
}

// A PDF that a client has read is shown to the model, and counted.
func TestMessagesPDF(t *testing.T) {
	f := serve(t, nil)
	data, err := os.ReadFile("../pdf/testdata/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	body := `"model":"talk","tools":[{"name":"Read"}],"messages":[{"role":"user","content":"x"},{"role":"assistant",` +
		`"content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]},{"role":"user","content":[{` +
		`"type":"tool_result","tool_use_id":"c","content":[{"type":"document",` +
		`"source":{"type":"base64","media_type":"application/pdf","data":"` +
		base64.StdEncoding.EncodeToString(data) + `"}}]}]}]`
	f.postMessage(t, `{"max_tokens":5,`+body+`}`)
	got := f.Prompt(t)
	if !strings.Contains(got, "as text, pages: 2]\n[page 1]\nHäfen") || !strings.Contains(got, "Björk\t87") {
		t.Errorf("prompt %q", got)
	}
	count := fmt.Sprintf(`{"input_tokens":%d}`, len(f.Parrot.Last(t).Prompt))
	f.Has(t, "POST", "/v1/messages/count_tokens", `{`+body+`}`, 200, count)
}
