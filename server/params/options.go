package params

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server/wire"
)

// Options are the parameters of a request, named as in Modelfiles and by Ollama's clients. Parameters of other engines
// (num_gpu, num_batch, mirostat...) are ignored.
type Options struct {
	parameters.Set
	Extensions
	Draft *draft `json:"draft"` // an extension

	Pin time.Duration `json:"-"` // how long the prefix cache keeps the prompt in preference to others; 0: it does not
}

// Extensions are parameters that Modelfiles do not have. OpenAI's API has them too, under the same names.
type Extensions struct {
	IgnoreEOS bool              `json:"ignore_eos"`
	LogitBias map[int32]float64 `json:"logit_bias"` // by token id
	Urgency
}

// Urgency says how soon a response is needed. All APIs have it, as an extension.
type Urgency struct {
	Priority   *int   `json:"priority"`
	DeadlineMs *int64 `json:"deadline_ms"`
}

// LogProbOptions request logprobs.
type LogProbOptions struct {
	LogProbs    bool `json:"logprobs"`
	TopLogProbs int  `json:"top_logprobs"`
}

// draft is the draft depth: a number of tokens, "auto" or "off".
type draft runtime.Draft

func (d *draft) UnmarshalJSON(b []byte) error {
	var text string
	if jsonfit.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	if whole, ok := jsonfit.Whole(text); ok {
		text = whole
	}
	parsed, err := runtime.ParseDraft(text)
	*d = draft(parsed)
	return err
}

// Apply applies the options over the defaults of a model with that context length. The caller has set the prompt.
func (o Options) Apply(d runtime.Defaults, context int, r *runtime.Request) error {
	d.ApplyTo(r)
	r.Apply(o.Set)
	r.IgnoreEOS = o.IgnoreEOS
	if o.LogitBias != nil {
		r.Sampling.LogitBias = o.LogitBias
	}
	if o.Draft != nil {
		r.Draft = runtime.Draft(*o.Draft)
	}
	if o.Priority != nil {
		r.Priority = *o.Priority
	}
	if o.DeadlineMs != nil {
		r.Deadline = time.Duration(min(*o.DeadlineMs, 1<<40)) * time.Millisecond
	}
	if err := parameters.CheckStops(r.Stop); err != nil {
		return wire.BadRequest("%v", err)
	}
	if o.NumCtx != nil && *o.NumCtx > 0 && *o.NumCtx < context {
		if len(r.Prompt) >= *o.NumCtx {
			return wire.BadRequest("the prompt has %d tokens, num_ctx is %d: %v", len(r.Prompt), *o.NumCtx, runtime.ErrPrompt)
		}
		left := *o.NumCtx - len(r.Prompt)
		if r.MaxTokens <= 0 || r.MaxTokens > left {
			r.MaxTokens = left
		}
	}
	return nil
}

// KeepAlive is how long a model stays loaded after a request: a number of seconds or a text such as 5m. Negative means
// forever. It is nil if the request does not set it.
type KeepAlive struct{ *time.Duration }

// UnmarshalJSON implements json.Unmarshaler.
func (k *KeepAlive) UnmarshalJSON(b []byte) error {
	var seconds *float64
	if json.Unmarshal(b, &seconds) == nil {
		if seconds != nil {
			k.set(time.Duration(math.Max(math.Min(*seconds, math.MaxInt32), -1) * float64(time.Second)))
		}
		return nil
	}
	var text string
	if jsonfit.Unmarshal(b, &text) != nil {
		return jsonfit.Wrong(b, "a number of seconds or a string such as 5m")
	}
	d, err := ParseKeepAlive(text)
	if err == nil {
		k.set(d)
	}
	return err
}

func (k *KeepAlive) set(d time.Duration) {
	if d < 0 {
		d = pool.Forever
	}
	k.Duration = &d
}

// Unloads reports whether to unload the model at once.
func (k KeepAlive) Unloads() bool { return k.Duration != nil && *k.Duration == 0 }

// ParseKeepAlive parses how long a model stays loaded: a number of seconds or a text such as 5m. Negative values give
// pool.Forever.
func ParseKeepAlive(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil {
		if d, err = time.ParseDuration(text + "s"); err != nil {
			return 0, fmt.Errorf("keep_alive %q is not a number of seconds or a duration such as 5m", wire.Clip(text))
		}
	}
	if d < 0 {
		d = pool.Forever
	}
	return d, nil
}
