package ollama

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// lines returns the stream of a response, or nil if it is not streamed. empty returns a message of it without content,
// which is the keep-alive: clients parse every line. The caller must stop the stream.
func lines(w http.ResponseWriter, wanted *bool, every time.Duration, empty func() any) *wire.Stream {
	if !streams(wanted) {
		return nil
	}
	return wire.NewLines(w, every, empty)
}

// part is one piece of a response, or the whole of one that is not streamed.
type part struct {
	text, thinking string
	calls          []callJSON
	ids            []int32 // if the request wants them
	logProbs       []server.LogProbJSON
}

// generated is what a job has generated.
type generated struct {
	part    // empty if it was streamed
	tokens  []int32
	outcome server.Outcome
}

// run runs a job. It passes the parts to stream, or gathers them if stream is nil.
func (s *api) run(
	ctx context.Context, m *server.Model, j server.Job, withIDs bool, stream func(part) error,
) (g generated, err error) {
	var text, thinking strings.Builder
	count := 0
	g.outcome, err = s.core.Run(ctx, j, func(piece server.Piece) error {
		g.tokens = append(g.tokens, piece.Ids...)
		p := part{text: piece.Text, thinking: piece.Thinking, calls: calls(count, piece.Calls),
			logProbs: m.LogProbs(piece.LogProbs)}
		count += len(p.calls)
		if withIDs {
			p.ids = piece.Ids
		}
		switch {
		case stream == nil:
			text.WriteString(p.text)
			thinking.WriteString(p.thinking)
			g.calls = append(g.calls, p.calls...)
			g.ids = append(g.ids, p.ids...)
			g.logProbs = append(g.logProbs, p.logProbs...)
		case !piece.Empty() || len(p.ids) > 0:
			return stream(p)
		}
		return nil
	})
	g.text, g.thinking = text.String(), thinking.String()
	return g, err
}
