package server

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// Shift lets a response go on when the context is full. A KV cache cannot drop tokens from its middle, so the rest is
// evaluated again as a new prompt, without what was dropped. The zero value ends the response instead.
type Shift struct {
	Context int // tokens of prompt and response together
	Keep    int // first tokens of the prompt, which are not dropped
	Tokens  int // most tokens of the response
}

// cut drops the oldest tokens after the first Keep, so that half of the context that they leave becomes free.
func (s Shift) cut(ids []int32) []int32 {
	keep := min(s.Keep, s.Context-1, len(ids))
	most := s.Context - max((s.Context-keep)/2, 1)
	if len(ids) <= most {
		return ids
	}
	return slices.Concat(ids[:keep], ids[len(ids)-(most-keep):])
}

// Cut returns the tokens of a prompt that does not fit, without the oldest ones after the first Keep. Half of the
// context that those leave is then free.
func (s Shift) Cut(prompt []int32) []int32 {
	if len(prompt) < s.Context {
		return prompt
	}
	return s.cut(prompt)
}

// generator is the part of a leased model that generates.
type generator interface {
	Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error]
}

// generate generates a job's response. A response that may shift is one stream, whatever is evaluated again for it.
func (j Job) generate(ctx context.Context, model generator) iter.Seq2[runtime.Event, error] {
	if j.Shift.Tokens == 0 {
		return model.Generate(ctx, j.Request)
	}
	return func(yield func(runtime.Event, error) bool) {
		r, begun := j.Request, time.Now()
		all := slices.Clone(r.Prompt)
		var before, stats runtime.Stats
		for {
			full := false
			for e, err := range model.Generate(ctx, r) {
				all = append(all, e.IDs...)
				if before.PromptTokens > 0 {
					e.Stats = added(before, e.Stats)
				}
				if e.Done == runtime.DoneLength && e.Stats.Tokens < j.Shift.Tokens && len(j.Shift.cut(all)) < len(all) {
					full, e.Done = true, ""
				}
				stats = e.Stats
				if !yield(e, err) || err != nil {
					return
				}
			}
			if !full {
				return
			}
			before, r.Prompt, r.Pins, r.Queued = stats, j.Shift.cut(all), nil, nil
			all = slices.Clone(r.Prompt)
			r.MaxTokens = min(j.Shift.Tokens-stats.Tokens, j.Shift.Context-len(r.Prompt))
			if r.Deadline > 0 {
				r.Deadline = max(j.Request.Deadline-time.Since(begun), time.Nanosecond)
			}
		}
	}
}

// added returns the statistics of a response of which a first part has ended. The prompt is that of the first part.
func added(first, next runtime.Stats) runtime.Stats {
	first.Tokens += next.Tokens
	first.GenerateTime += next.PromptTime + next.GenerateTime
	first.Drafted += next.Drafted
	first.Accepted += next.Accepted
	first.TargetSteps += next.TargetSteps
	return first
}
