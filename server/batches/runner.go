package batches

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Do runs a request. Errors are those of the context only: what goes wrong with a request is in its response.
type Do func(ctx context.Context, r Request) (Response, error)

// Options say how requests run.
type Options struct {
	Endpoint string       // every request must be for it; "": any of Endpoints
	Parallel int          // requests at once; 0: 16
	Progress func(Counts) // called after each result, one at a time; may be nil

	pause func(context.Context, time.Duration) // waits; nil: on the clock
}

// Counts counts results.
type Counts struct {
	Completed int // requests that succeeded
	Failed    int // those that did not, and lines that are no request
}

// Done returns the number of results.
func (c Counts) Done() int { return c.Completed + c.Failed }

func (c *Counts) add(r *Result) {
	if r.Succeeded() {
		c.Completed++
	} else {
		c.Failed++
	}
}

const (
	defaultParallel = 16
	// window is how many requests may be ahead of the first one whose result is not written, as a multiple of the requests
	// at once.
	window = 4
)

// Runner runs the requests of a file.
type Runner struct {
	o      Options
	ahead  atomic.Int64  // bytes of results that wait for the one before them
	wrote  chan struct{} // signals that one was written; capacity 1
	in     *input
	counts Counts
}

// New returns a runner of the requests in a file.
func New(in io.Reader, o Options) *Runner {
	o.Parallel = cmp.Or(max(o.Parallel, 0), defaultParallel)
	if o.pause == nil {
		o.pause = pause
	}
	return &Runner{o: o, wrote: make(chan struct{}, 1), in: newInput(in, limits.BatchLine)}
}

// Counts counts the results so far, with those of the runs that this one continues.
func (r *Runner) Counts() Counts { return r.counts }

// next returns the next line. Wrong lines have an error. ok is false at the end of the file.
func (r *Runner) next() (q Request, wrong *ResultError, ok bool, err error) {
	text, err := r.in.next()
	switch {
	case errors.Is(err, io.EOF):
		return q, nil, false, nil
	case errors.Is(err, errLongLine):
		q.Line = r.in.line
		return q, lineError(q.Line, "it has more than %d bytes", limits.BatchLine), true, nil
	case err != nil:
		return q, nil, false, err
	}
	q, wrong = parse(r.in.line, text, r.o.Endpoint)
	return q, wrong, true, nil
}

// ErrOther reports results of another file than the one that is run.
var ErrOther = errors.New("the results belong to other requests")

// Resume reads the results of an interrupted run, skips the lines that have one, and cuts off a result that was not
// written whole. The file is then at its end. Results of other requests are an ErrOther.
func (r *Runner) Resume(out *os.File) error {
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	results, whole := bufio.NewReaderSize(out, 64<<10), int64(0)
	for {
		text, err := readLine(results)
		if err != nil {
			return err
		}
		var done Result
		if text == nil || json.Unmarshal(text, &done) != nil {
			break
		}
		q, _, ok, err := r.next()
		if err != nil {
			return err
		}
		if !ok || done.Line != 0 && done.Line != q.Line || done.CustomID != nil && *done.CustomID != q.CustomID ||
			done.CustomID == nil && q.CustomID != "" {
			return fmt.Errorf("result %d is not that of line %d: %w", r.counts.Done()+1, q.Line, ErrOther)
		}
		r.counts.add(&done)
		whole += int64(len(text)) + 1
	}
	if err := out.Truncate(whole); err != nil {
		return err
	}
	_, err := out.Seek(whole, io.SeekStart)
	return err
}

// readLine returns the next line without its end, or nil if there is none that is complete.
func readLine(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// Run runs the remaining requests and writes their results. It returns the context's error if that ends first, and
// otherwise an error of reading or writing; each result is then written whole or not at all, if out writes so.
func (r *Runner) Run(ctx context.Context, out io.Writer, do Do) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	slots := make(chan struct{}, r.o.Parallel)
	order := make(chan chan *Result, window*r.o.Parallel) // of the results of lines, which are written in this order
	var readErr error
	running.Go(func() {
		defer close(order)
		readErr = r.dispatch(ctx, &running, slots, order, do)
	})
	for next := range order {
		select {
		case result := <-next:
			if result == nil { // the context has ended
				return ctx.Err()
			}
			if err := r.write(out, result); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return cmp.Or(readErr, ctx.Err())
}

// dispatch starts the requests of all lines, in order.
func (r *Runner) dispatch(ctx context.Context, running *sync.WaitGroup, slots chan struct{},
	order chan<- chan *Result, do Do) error {
	for {
		q, wrong, ok, err := r.next()
		if !ok {
			return err
		}
		result := make(chan *Result, 1)
		select {
		case order <- result:
		case <-ctx.Done():
			return nil
		}
		if wrong != nil {
			result <- q.failed(wrong)
			continue
		}
		if !r.hasRoom(ctx) {
			return nil
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		running.Go(func() {
			defer func() { <-slots }()
			result <- r.attempt(ctx, q, do)
		})
	}
}

// hasRoom waits until few enough results wait to be written, and reports false if the context ends. It ends: the result
// that the others wait for belongs to a request that has been started.
func (r *Runner) hasRoom(ctx context.Context) bool {
	for r.ahead.Load() > limits.BatchAhead {
		select {
		case <-r.wrote:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Rest writes an error for each remaining line.
func (r *Runner) Rest(out io.Writer, code, message string) error {
	for {
		q, wrong, ok, err := r.next()
		if !ok {
			return err
		}
		if wrong == nil {
			wrong = &ResultError{code, message}
		}
		if err := r.write(out, q.failed(wrong)); err != nil {
			return err
		}
	}
}

func (r *Runner) write(out io.Writer, result *Result) error {
	b, err := encode(result)
	if err == nil {
		_, err = out.Write(b)
	}
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	r.counts.add(result)
	if result.Response != nil {
		r.ahead.Add(-int64(len(result.Response.Body)))
		select {
		case r.wrote <- struct{}{}:
		default:
		}
	}
	if r.o.Progress != nil {
		r.o.Progress(r.counts)
	}
	return nil
}

// encode returns a line of results.
func encode(result *Result) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(result)
	return b.Bytes(), err
}

// failed returns the result of a line that has no response.
func (q Request) failed(e *ResultError) *Result {
	result := &Result{ID: newID(), Error: e}
	if q.CustomID != "" {
		result.CustomID = &q.CustomID
	}
	if e.Code == CodeInvalid {
		result.Line = q.Line
	}
	return result
}

// Waits before a request that a busy server refused is repeated.
const (
	leastPause = time.Second
	mostPause  = 30 * time.Second
)

// attempt runs a request until the server is not too busy for it, and once more if the server failed, as it does when a
// model's process dies. It returns nil if the context ends.
func (r *Runner) attempt(ctx context.Context, q Request, do Do) *Result {
	failed := false
	for wait := leastPause; ; wait = min(2*wait, mostPause) {
		response, err := do(ctx, q)
		if err != nil || ctx.Err() != nil {
			return nil
		}
		switch {
		case response.Status == http.StatusServiceUnavailable || response.Status == http.StatusTooManyRequests:
			r.o.pause(ctx, max(wait, min(response.RetryAfter, mostPause)))
			continue
		case response.Status == http.StatusInternalServerError && !failed:
			failed = true
			continue
		}
		body := bytes.TrimSpace(response.Body)
		if !json.Valid(body) {
			return q.failed(&ResultError{"invalid_response", fmt.Sprintf("the response, of status %d, is not JSON",
				response.Status)})
		}
		r.ahead.Add(int64(len(body)))
		return &Result{ID: newID(), CustomID: &q.CustomID,
			Response: &ResultResponse{response.Status, response.ID, body}}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// newID returns the id of a result.
func newID() string { return fmt.Sprintf("batch_req_%016x%08x", rand.Uint64(), rand.Uint32()) }

// Each passes the lines of a file to fn, until that returns an error. io.EOF ends without one.
func Each(in io.Reader, endpoint string, fn func(q Request, wrong *ResultError) error) error {
	r := New(in, Options{Endpoint: endpoint})
	for {
		q, wrong, ok, err := r.next()
		if !ok {
			return err
		}
		if err := fn(q, wrong); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
