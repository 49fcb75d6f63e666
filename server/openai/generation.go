package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/wire"
)

// generation is a response that is being generated.
type generation struct {
	api      *api
	writer   *responsesWriter
	model    *server.Model
	job      server.Job
	summary  *summarizer      // generates a summary instead; nil: the job generates a response
	response *stored.Response // nil: not stored
}

// errCancelled ends a generation that a client has cancelled or deleted.
var errCancelled = errors.New("the response was cancelled")

// store begins to store the response, and returns it. One that is too large is not stored, as it says.
func (g *generation) store(cancel context.CancelCauseFunc) (body json.RawMessage, err error) {
	if body, err = wire.Encode(&g.writer.response); err != nil {
		return nil, err
	}
	if !g.api.stored.Begin(g.response, body, cancel) {
		g.response, g.writer.response.Store = nil, false
	}
	return body, nil
}

// respond generates the response and sends it.
func (g *generation) respond(ctx context.Context) error {
	if err := g.run(ctx); err != nil {
		return err
	}
	if g.writer.events != nil {
		return nil
	}
	return wire.WriteJSON(g.writer.w, g.writer.response)
}

// run generates the response and stores what has come of it.
func (g *generation) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.fail(ctx, fmt.Errorf("internal error: %v", p))
			panic(p)
		}
	}()
	done, err := g.generate(ctx)
	switch {
	case err == nil:
		err = g.writer.end(done)
	case errors.Is(context.Cause(ctx), errCancelled):
		err = g.writer.cancel()
	}
	if err != nil {
		g.fail(ctx, err)
		return err
	}
	return g.finish()
}

func (g *generation) generate(ctx context.Context) (server.Outcome, error) {
	if g.summary == nil {
		return g.api.core.Run(ctx, g.job, g.writer.piece)
	}
	text, done, err := g.summary.run(ctx)
	if err == nil {
		g.writer.text.WriteString(text)
		err = g.writer.piece(server.Piece{}) // the response has begun
	}
	return done, err
}

// fail stores that the response has failed, or that its client has disconnected.
func (g *generation) fail(ctx context.Context, err error) {
	if context.Cause(ctx) == context.Canceled {
		g.writer.status(statusCancelled, nil)
	} else {
		g.writer.status(statusFailed, errorOf(wire.ErrorOf(err)))
	}
	_ = g.finish() // fails only if the response cannot be encoded
}

// finish stores the response as it is.
func (g *generation) finish() error {
	if g.response == nil {
		return nil
	}
	body, err := wire.Encode(&g.writer.response)
	if err != nil {
		return err
	}
	var output []stored.Item
	for i := range g.writer.response.Output {
		raw, err := wire.Encode(&g.writer.response.Output[i])
		if err != nil {
			return err
		}
		output = append(output, stored.Item{ID: g.writer.response.Output[i].ID, Raw: raw})
	}
	g.api.stored.Finish(g.response, body, output)
	return nil
}

// inBackground generates a response after its request has ended.
func (s *api) inBackground(w http.ResponseWriter, r *http.Request, g *generation) error {
	if s.background.Add(1) > limits.BackgroundResponses {
		s.background.Add(-1)
		return fmt.Errorf("%d responses are generated in the background: %w", limits.BackgroundResponses, runtime.ErrBusy)
	}
	key := keys.From(r.Context())
	ctx, cancel := context.WithCancelCause(keys.With(s.core.Lifetime(), key))
	body, err := g.store(cancel)
	if err == nil && g.response == nil {
		err = wire.BadParam("background", "the conversation is larger than what the server stores")
	}
	if err != nil {
		s.background.Add(-1)
		cancel(nil)
		return err
	}
	done := key.GoOn()
	s.core.Hold(ctx, g.model)
	go func() {
		defer s.background.Add(-1)
		defer done()
		defer cancel(nil)
		defer func() {
			if p := recover(); p != nil {
				s.opts.Log("POST /v1/responses: panic: %v\n%s", p, debug.Stack())
			}
		}()
		if err := g.run(ctx); err != nil && ctx.Err() == nil && wire.ErrorOf(err).Status >= http.StatusInternalServerError {
			s.opts.Log("POST /v1/responses: %v", err)
		}
	}()
	return wire.WriteJSON(w, body)
}
