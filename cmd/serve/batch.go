package serve

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gofrs/flock"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/openai"
	"github.com/spf13/cobra"
)

func batchCommand(a *cli.App) *cobra.Command {
	o := batchOptions{serve: serveOptions{keepAlive: "5m"}}
	c := &cobra.Command{
		Use:   "batch FILE",
		Short: "Run the requests of a JSONL file without a server",
		Long: `Run requests to OpenAI's API from a file, one JSON object a line, as /v1/batches of a server does:

  {"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": "Hi"}}

Requests may be for /v1/chat/completions, /v1/completions, /v1/responses and /v1/embeddings, and for several
models of the store. Results are written in the order of the lines, each when those before it are. A line
that is no request has an error with its number as its result; the others go on.

With -o, a run that was interrupted goes on when it is run again: requests that have a result in the file do
not run again. The exit status is 1 if a request failed. FILE - is standard input.`,
		Example: `  ingot batch requests.jsonl -o results.jsonl
  ingot batch requests.jsonl | jq -r '.response.body.choices[0].text'`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return batchFile(c.Context(), a, args[0], o) },
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "write results to `file`, and resume from it")
	f.BoolVar(&o.json, "json", false, "print progress and the summary as JSON lines")
	f.IntVar(&o.serve.models, "models", 0, "maximum number of loaded models (default by memory)")
	f.StringVar(&o.serve.memory, "memory", "", "memory `limit` of all models, such as 16GB (default all)")
	f.IntVar(&o.serve.context, "context", 0, "KV cache size of a model in tokens (default by memory)")
	f.IntVar(&o.serve.parallel, "num-parallel", 0, "running requests per model (default 32)")
	f.StringVar(&o.serve.draft, "draft", "auto", "default draft depth: a number, auto or off (no draft model)")
	f.BoolVar(&o.serve.float32, "float32", false, "compute in float32")
	o.serve.kv.Add(c)
	o.serve.cpu.Add(c)
	return c
}

type batchOptions struct {
	output string
	json   bool
	serve  serveOptions
}

// batchJSON is the summary of --json, and with the event "progress" a report before it.
type batchJSON struct {
	Event     string `json:"event"`
	Total     int    `json:"total"` // 0: not known
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
}

func batchFile(ctx context.Context, a *cli.App, path string, o batchOptions) error {
	opts, err := o.serve.server()
	if err != nil {
		return err
	}
	in, total, err := batchInput(ctx, a, path)
	if err != nil {
		return err
	}
	defer in.Close()
	now := time.Now()
	progress := &batchProgress{a: a, total: total, style: a.Style(o.json), begun: now, shown: now}
	r := batches.New(in, batches.Options{Parallel: cmp.Or(o.serve.parallel, 32), Progress: progress.show})
	var out io.Writer = a.Out
	if o.output != "" {
		file, closeOutput, err := openResults(o.output)
		if err != nil {
			return err
		}
		defer closeOutput()
		if err := r.Resume(file); errors.Is(err, batches.ErrOther) {
			return fmt.Errorf("%s has results, but not of %s: %w; remove it, or choose another file", o.output, path, err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", o.output, err)
		}
		out = file
	}
	progress.resumed = r.Counts().Done()
	if total == 0 || progress.resumed < total {
		if err := runBatch(ctx, a, r, out, opts, o); err != nil {
			if ctx.Err() != nil && o.output != "" {
				a.Note("%d requests have a result in %s; run the command again to resume", r.Counts().Done(), o.output)
			}
			return err
		}
	}
	return progress.end(r.Counts())
}

// runBatch runs the requests on a server that listens nowhere.
func runBatch(ctx context.Context, a *cli.App, r *batches.Runner, out io.Writer, opts server.Options,
	o batchOptions) (err error) {
	if opts.Store, err = a.OpenStore(); err != nil {
		return err
	}
	if opts.Clock, err = cli.Clock(""); err != nil {
		return err
	}
	if opts.Load, err = loader(a, o.serve); err != nil {
		return err
	}
	if _, err := engines.Need(ctx, a); err != nil {
		return err
	}
	opts.Log = a.Note
	s := server.New(opts, openai.New)
	defer s.Close()
	return r.Run(ctx, out, func(ctx context.Context, q batches.Request) (batches.Response, error) {
		return s.Do(ctx, "", q)
	})
}

// batchInput opens a file of requests and counts its lines. Those of standard input are not known: 0.
func batchInput(ctx context.Context, a *cli.App, path string) (in io.ReadCloser, total int, err error) {
	if path == "-" {
		return io.NopCloser(a.Stdin(ctx)), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return f, 0, err
	}
	err = batches.Each(bufio.NewReaderSize(f, 1<<20), "", func(batches.Request, *batches.ResultError) error {
		total++
		return ctx.Err()
	})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && total == 0 {
		err = fmt.Errorf("%s has no requests", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, total, nil
}

// openResults opens a file of results, which no other process writes meanwhile.
func openResults(path string) (f *os.File, closeOutput func(), err error) {
	l := flock.New(path, flock.SetPermissions(0o644))
	locked, err := l.TryLock()
	if err != nil {
		return nil, nil, err
	}
	if !locked {
		return nil, nil, fmt.Errorf("%s is written by another process", path)
	}
	if f, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		_ = l.Unlock()
		return nil, nil, err
	}
	return f, func() { _ = f.Close(); _ = l.Unlock() }, nil
}

// batchProgress shows how many requests have a result.
type batchProgress struct {
	a              *cli.App
	total, resumed int
	style          cli.Style
	screen         *cli.Screen
	begun, shown   time.Time
}

func (p *batchProgress) show(c batches.Counts) {
	now := time.Now()
	if p.style == cli.NoProgress || now.Sub(p.shown) < p.style.Every() || c.Done() == p.total {
		return
	}
	p.shown = now
	if p.style == cli.JSONLines {
		cli.WriteJSONLine(p.a.Err, batchJSON{"progress", p.total, c.Completed, c.Failed})
		return
	}
	rate := float64(c.Done()-p.resumed) / max(now.Sub(p.begun).Seconds(), 1e-3)
	text := fmt.Sprintf("%d requests, %d failed, %.1f/s", c.Done(), c.Failed, rate)
	if p.total > 0 {
		left := time.Duration(float64(p.total-c.Done()) / max(rate, 1e-6) * float64(time.Second))
		text = fmt.Sprintf("%d of %d requests, %d failed, %.1f/s, %s left", c.Done(), p.total, c.Failed, rate,
			left.Round(time.Second))
	}
	if p.style == cli.OnTerminal {
		if p.screen == nil {
			p.screen = p.a.Screen()
		}
		p.screen.Draw(text)
		return
	}
	fmt.Fprintln(p.a.Err, text)
}

// end reports the results, and fails if a request did.
func (p *batchProgress) end(c batches.Counts) error {
	if p.screen != nil {
		p.screen.Clear()
	}
	if p.style == cli.JSONLines {
		cli.WriteJSONLine(p.a.Err, batchJSON{"done", c.Done(), c.Completed, c.Failed})
	}
	if c.Failed == 0 {
		if p.style != cli.JSONLines {
			p.a.Note("%d requests succeeded", c.Completed)
		}
		return nil
	}
	p.a.Tell("%d of %d requests failed; their results say why", c.Failed, c.Done())
	return cli.ErrFailed
}
