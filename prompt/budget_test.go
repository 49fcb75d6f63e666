package prompt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

// countingBudget records how much memory is taken.
type countingBudget struct {
	held, most int64
	fail       error
}

func (p *countingBudget) Take(_ context.Context, n int64) (func(), error) {
	if p.fail != nil {
		return nil, p.fail
	}
	p.held += n
	p.most = max(p.most, p.held)
	return func() { p.held -= n }, nil
}

// faulty is a template that panics.
type faulty struct{ chat.Template }

func (faulty) Render(context.Context, chat.Request) (string, error) {
	panic("an index is out of range")
}

// A render's limits grow with its input. Its memory is released however it ends.
func TestRenderLimits(t *testing.T) {
	large := chat.Request{Messages: []chat.Message{user(strings.Repeat("x", 1<<20), 0)}}
	small := chat.Request{Messages: []chat.Message{user("x", 0)}}
	const each = `{% for m in messages %}`
	for name, c := range map[string]struct {
		text string
		r    chat.Request
		is   error
	}{
		"fits":        {`{{ 'x' * 900000 }}`, small, nil},
		"output":      {`{% for i in range(20) %}{{ 'x' * 100000 }}{% endfor %}`, small, jinja.ErrLimit},
		"memory":      {`{% for i in range(50) %}{% set x = 'x' * 100000 %}{% endfor %}`, small, jinja.ErrLimit},
		"large input": {each + `{{ m.content | trim | upper }}{{ m.content }}{% endfor %}`, large, nil},
		"large output": {each +
			`{{ m.content }}{{ m.content }}{{ m.content }}{{ m.content }}{{ m.content }}{{ m.content }}{% endfor %}`,
			large, jinja.ErrLimit},
		"large memory": {each + `{% for i in range(30) %}{% set x = m.content | upper %}{% endfor %}{% endfor %}`,
			large, jinja.ErrLimit},
		"exception": {`{% if 1 %}{{ raise_exception('no') }}{% endif %}`, small, jinja.ErrRender},
		"too much input": {`{{ messages | length }}`, chat.Request{Messages: []chat.Message{user(strings.Repeat("x",
			limits.PromptText), 0)}}, ErrLong},
	} {
		template, err := chat.Parse(t.Context(), c.text)
		if err != nil {
			t.Fatal(err)
		}
		var p countingBudget
		if _, err := Render(t.Context(), &p, template, c.r); !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
		want := renderLimits(c.r.Size())
		if sum := want.Memory + 2*want.Output; p.held != 0 || p.most != sum && !errors.Is(c.is, ErrLong) {
			t.Errorf("%s: %d bytes at most, want %d; %d are not released", name, p.most, sum, p.held)
		}
	}
	if l := renderLimits(0); l.Memory != limits.RenderMemory || l.Output != limits.RenderOutput {
		t.Errorf("limits without input: %+v", l)
	}
	if l := renderLimits(4 << 20); l.Output != limits.PromptText {
		t.Errorf("limits of a large input: %+v", l)
	}
	var p countingBudget
	func() {
		defer func() { _ = recover() }()
		_, _ = Render(t.Context(), &p, faulty{}, small)
	}()
	if p.most == 0 || p.held != 0 {
		t.Errorf("after a panic, %d bytes are not released, %d at most", p.held, p.most)
	}
}

// An encoder's memory is reserved before it runs. A text that is too long is rejected first.
func TestEncodeLimit(t *testing.T) {
	ran := 0
	encode := func(context.Context, string) ([]int32, error) { ran++; return []int32{1}, runtime.ErrNoTokenizer }
	var p countingBudget
	_, err := Encode(t.Context(), &p, "text", encode)
	if !errors.Is(err, runtime.ErrNoTokenizer) || p.most != 4*limits.EncodePerByte || p.held != 0 {
		t.Errorf("%v, %+v", err, p)
	}
	if _, err := Encode(t.Context(), &p, strings.Repeat("x", limits.PromptText+1), encode); !errors.Is(err, ErrLong) ||
		ran != 1 {
		t.Errorf("%v after %d runs", err, ran)
	}
	p.fail = runtime.ErrBusy
	if _, err := Encode(t.Context(), &p, "text", encode); !errors.Is(err, runtime.ErrBusy) || ran != 1 {
		t.Errorf("%v after %d runs", err, ran)
	}
	s := style(t, template(`{% for m in messages %}{{ m.content }}{% endfor %}`))
	c := Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0)}}, Budget: &p}
	if _, err := s.Begin(t.Context(), letters{}, c); !errors.Is(err, runtime.ErrBusy) {
		t.Errorf("a prompt without memory: %v", err)
	}
}

// The size of a request includes all texts that a template gets.
func TestSizeOfRequests(t *testing.T) {
	text := strings.Repeat("x", 1000)
	d := jinja.NewDict()
	if err := d.Set("k", jinja.NewList(text, text)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    chat.Request
		want int64
	}{
		"nothing": {chat.Request{}, 0},
		"content": {chat.Request{Messages: []chat.Message{{Content: text, Reasoning: text}}}, 2000},
		"parts": {chat.Request{Messages: []chat.Message{{Parts: []chat.Part{{Type: "text", Text: text, Fields: d}}}}},
			3000},
		"calls":     {chat.Request{Messages: []chat.Message{{ToolCalls: []chat.ToolCall{{Name: text, Arguments: d}}}}}, 3000},
		"tools":     {chat.Request{Tools: []chat.Tool{{Value: d}, {}}}, 2000},
		"variables": {chat.Request{Extra: d, Documents: jinja.NewList(text), Suffix: text}, 4000},
	} {
		if got := c.r.Size(); got < c.want || got > c.want+1000 {
			t.Errorf("%s: %d, want %d or slightly more", name, got, c.want)
		}
	}
}
