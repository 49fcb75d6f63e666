package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/limits/jsonfit"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// textCompletion is the body of /v1/completions: it completes prompts verbatim, without a chat template.
type textCompletion struct {
	Model         string        `json:"model"`
	Prompt        prompts       `json:"prompt"`
	N             *int          `json:"n"`
	MaxTokens     *int          `json:"max_tokens"`
	Echo          bool          `json:"echo"`
	LogProbs      *int          `json:"logprobs"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	sampling

	Suffix    unsupported `json:"suffix"`
	BestOf    unsupported `json:"best_of"`
	MinTokens unsupported `json:"min_tokens"`
}

// prompts are one or several texts or lists of token ids.
type prompts []promptInput

type promptInput struct {
	text string
	ids  []int32 // used instead of text if not nil
}

func (p *prompts) UnmarshalJSON(b []byte) error {
	var text *string
	if jsonfit.Unmarshal(b, &text) == nil {
		if text != nil {
			*p = prompts{{text: *text}}
		}
		return nil
	}
	var ids []int32
	if jsonfit.Unmarshal(b, &ids) == nil {
		if len(ids) > 0 {
			*p = prompts{{ids: ids}}
		}
		return nil
	}
	var list []json.RawMessage
	if jsonfit.Unmarshal(b, &list) != nil {
		return jsonfit.Wrong(b, "a string, an array of token ids, or an array of either")
	}
	for i, one := range list {
		var input promptInput
		err := jsonfit.Wrong(one, "a string or an array of token ids")
		switch one[0] {
		case '"':
			err = jsonfit.Unmarshal(one, &input.text)
		case '[':
			if err = jsonfit.Unmarshal(one, &input.ids); err == nil && len(input.ids) == 0 {
				err = jsonfit.Errorf("no token ids")
			}
		}
		if err != nil {
			return jsonfit.In(err, i)
		}
		*p = append(*p, input)
	}
	return nil
}

// textCompletionJSON is a response of /v1/completions, or a chunk of a stream.
type textCompletionJSON struct {
	ID          string           `json:"id"`
	Object      string           `json:"object"`
	Created     int64            `json:"created"`
	Model       string           `json:"model"`
	Fingerprint string           `json:"system_fingerprint"`
	Choices     []textChoiceJSON `json:"choices"`
	Usage       *usageJSON       `json:"usage,omitempty"`
}

type textChoiceJSON struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *textLogProbs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

// textLogProbs has parallel lists with an element for each token.
type textLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []float32            `json:"token_logprobs"`
	Top      []map[string]float32 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"` // in characters, from the start of the choice's text
}

// add appends tokens.
func (t *textLogProbs) add(m *server.Model, list []runtime.LogProb, offset *int) {
	for _, l := range m.LogProbs(list) {
		top := map[string]float32{l.Token: l.LogProb}
		for _, o := range l.Top {
			top[o.Token] = o.LogProb
		}
		t.Tokens, t.LogProbs, t.Top = append(t.Tokens, l.Token), append(t.LogProbs, l.LogProb), append(t.Top, top)
		t.Offsets = append(t.Offsets, *offset)
		*offset += utf8.RuneCountInString(l.Token)
	}
}

func newTextLogProbs() *textLogProbs {
	return &textLogProbs{[]string{}, []float32{}, []map[string]float32{}, []int{}}
}

func (q *textCompletion) check() error {
	one := "1"
	if q.N != nil {
		one = fmt.Sprint(*q.N)
	}
	for _, err := range []error{
		q.Suffix.check("suffix"), q.BestOf.check("best_of", one), q.MinTokens.check("min_tokens"),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case len(q.Prompt) == 0:
		return wire.BadParam("prompt", "missing or empty")
	case q.Echo && q.LogProbs != nil:
		return wire.BadParam("logprobs", "not supported with echo")
	}
	if q.LogProbs != nil {
		return checkTop("logprobs", *q.LogProbs)
	}
	return nil
}

// completions is POST /v1/completions.
func (s *api) completions(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q textCompletion
	if err := read(r, &q); err != nil {
		return err
	}
	events := s.events(w, q.Stream)
	defer events.Stop()
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	n, err := choices(q.N)
	if err != nil {
		return err
	}
	if n*len(q.Prompt) > maxChoices {
		return wire.BadParam("prompt", "%d prompts with %d choices each: at most %d choices are allowed",
			len(q.Prompt), n, maxChoices)
	}
	o, err := q.options(q.MaxTokens, "max_tokens")
	if err != nil {
		return err
	}
	logs := params.LogProbOptions{}
	if q.LogProbs != nil {
		logs = params.LogProbOptions{LogProbs: true, TopLogProbs: *q.LogProbs}
	}
	var jobs []server.Job
	a := newTextWriter(events, m, n*len(q.Prompt), q.LogProbs != nil)
	for _, p := range q.Prompt {
		ids, err := s.promptIDs(r.Context(), m, p)
		if err != nil {
			return err
		}
		for i := range n {
			j, err := s.core.NewJob(m, &prompt.Prompt{IDs: ids}, o, params.Format{}, logs)
			if err != nil {
				return err
			}
			j.Begun, j.Request.Queued = begun, events.Open
			setSeed(&j.Request, i)
			if q.Echo {
				if err := a.echo(len(jobs), p); err != nil {
					return err
				}
			}
			jobs = append(jobs, j)
		}
	}
	all, err := s.core.RunAll(r.Context(), jobs, func(i int, p server.Piece) error {
		if q.Stream {
			return a.sendPiece(i, p)
		}
		a.collect(i, p)
		return nil
	})
	if err != nil {
		return err
	}
	var first []server.Outcome // the first choice of each prompt
	for i := 0; i < len(all); i += n {
		first = append(first, all[i])
	}
	usage := usageOf(first, all)
	if q.Stream {
		return a.end(all, usage, q.StreamOptions.Usage)
	}
	return wire.WriteJSON(w, a.response(all, usage))
}

// promptIDs returns the token ids of a prompt.
func (s *api) promptIDs(ctx context.Context, m *server.Model, p promptInput) (ids []int32, err error) {
	if ids = p.ids; ids == nil {
		if ids, err = s.core.Encode(ctx, m, p.text); err != nil {
			return nil, err
		}
	}
	return ids, checkLength(m, &prompt.Prompt{IDs: ids})
}

// textWriter writes the choices of one request, as a stream or as one response.
type textWriter struct {
	m       *server.Model
	frame   textCompletionJSON // without choices
	events  *wire.Stream       // nil: not streamed
	logs    bool
	choices []textChoice
}

// textChoice is the state of one choice.
type textChoice struct {
	echo   string // the prompt, until it is written
	text   strings.Builder
	logs   *textLogProbs
	offset int
}

func newTextWriter(events *wire.Stream, m *server.Model, n int, logs bool) *textWriter {
	a := &textWriter{m: m, logs: logs, choices: make([]textChoice, n), events: events}
	a.frame = textCompletionJSON{ID: server.NewID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(),
		Model: m.Asked(), Fingerprint: fingerprint(m)}
	return a
}

// echo prepends the prompt to a choice.
func (a *textWriter) echo(i int, p promptInput) (err error) {
	c := &a.choices[i]
	if c.echo = p.text; p.ids == nil {
		return nil
	}
	if a.m.Tokenizer() == nil {
		return runtime.ErrNoTokenizer
	}
	if slices.Min(p.ids) < 0 {
		return wire.BadParam("prompt", "token ids must not be negative")
	}
	c.echo, err = a.m.Tokenizer().Decode(p.ids, true)
	return err
}

func (a *textWriter) collect(i int, p server.Piece) {
	c := &a.choices[i]
	c.text.WriteString(c.echo + p.Text)
	c.echo = ""
	if a.logs {
		if c.logs == nil {
			c.logs = newTextLogProbs()
		}
		c.logs.add(a.m, p.LogProbs, &c.offset)
	}
}

func (a *textWriter) response(all []server.Outcome, usage usageJSON) textCompletionJSON {
	out := a.frame
	out.Usage = &usage
	for i := range a.choices {
		c := &a.choices[i]
		out.Choices = append(out.Choices,
			textChoiceJSON{Index: i, Text: c.text.String(), LogProbs: c.logs, Finish: finishReason(all[i])})
	}
	return out
}

func (a *textWriter) sendPiece(i int, p server.Piece) error {
	c := &a.choices[i]
	if p.Empty() && c.echo == "" {
		return nil
	}
	choice := textChoiceJSON{Index: i, Text: c.echo + p.Text}
	c.echo = ""
	if a.logs {
		choice.LogProbs = newTextLogProbs()
		choice.LogProbs.add(a.m, p.LogProbs, &c.offset)
	}
	return a.send([]textChoiceJSON{choice}, nil)
}

func (a *textWriter) send(choices []textChoiceJSON, usage *usageJSON) error {
	chunk := a.frame
	chunk.Choices, chunk.Usage = choices, usage
	return a.events.Send("", chunk)
}

// end sends the last chunks of a stream.
func (a *textWriter) end(all []server.Outcome, usage usageJSON, withUsage bool) error {
	for i, o := range all {
		if err := a.send([]textChoiceJSON{{Index: i, Finish: finishReason(o)}}, nil); err != nil {
			return err
		}
	}
	if withUsage {
		if err := a.send([]textChoiceJSON{}, &usage); err != nil {
			return err
		}
	}
	return a.events.Done()
}
