package offline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/wire"
)

// worker runs batches, one at a time.
type worker struct {
	files *files
	most  bounds
	do    func(ctx context.Context, owner string, q batches.Request) (batches.Response, error)
	log   func(format string, args ...any)
	kick  chan struct{} // wakes the worker; capacity 1

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // of running batches
}

// How often a worker looks for batches of other servers, whether another server has cancelled the one that runs, and
// for expired files.
const (
	lookEvery = 15 * time.Second
	tidyEvery = time.Hour
	saveEvery = time.Second // the counts of a running batch
)

// wake makes the worker look for a batch.
func (w *worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// cancel ends a running batch of this server. Those of other servers look at their record.
func (w *worker) cancel(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.cancels[id]; stop != nil {
		stop()
	}
	w.wake()
}

// run runs batches until the server stops.
func (w *worker) run(ctx context.Context) {
	var tidied time.Time
	for ctx.Err() == nil {
		if time.Since(tidied) > tidyEvery {
			w.files.tidy()
			tidied = time.Now()
		}
		if w.next(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.kick:
		case <-time.After(lookEvery):
		}
	}
}

// next runs the oldest batch that is not finished. It returns false if there is none, or if another server runs it.
func (w *worker) next(ctx context.Context) bool {
	list := w.files.unfinished()
	if len(list) == 0 {
		return false
	}
	l, err := lock.Take(ctx, filepath.Join(w.files.root, "worker.lock"), lock.Options{NoWait: true})
	if err != nil {
		return false
	}
	defer lock.Drop(l)
	b, err := w.files.batch(list[0].Owner, list[0].ID)
	if err != nil || b.finished() { // another server has run it meanwhile
		return err == nil
	}
	if err := w.batch(ctx, b); err != nil && ctx.Err() == nil {
		w.log("batch %s: %v", b.ID, err)
		err = w.fail(ctx, b, errorJSON{Code: "server_error", Message: wire.Line(err.Error())})
		return err == nil // else it is tried again later
	}
	return true
}

// fail ends a batch that cannot run.
func (w *worker) fail(ctx context.Context, b record, e errorJSON) error {
	_, err := w.files.update(ctx, b.Owner, b.ID, func(b *record) error {
		b.Errors = &errorsJSON{"list", []errorJSON{e}}
		b.enter(failed, w.files.now().Unix())
		return nil
	})
	if err != nil {
		return err
	}
	return w.files.remove(b.Owner, b.ID, resultExtension)
}

// batch runs a batch to its end. If the server stops, it returns the context's error and the batch goes on later.
func (w *worker) batch(ctx context.Context, b record) error {
	if b.Status == validating {
		total, wrong, err := w.count(ctx, b)
		if wrong != nil {
			return w.fail(ctx, b, *wrong)
		}
		if err != nil {
			return err
		}
		b, err = w.files.update(ctx, b.Owner, b.ID, func(b *record) error {
			b.Counts.Total = total
			if b.Status == validating {
				b.enter(inProgress, w.files.now().Unix())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	end := completed
	if b.Status == inProgress {
		switch err := w.requests(ctx, b); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			end = expired
		case err != nil && !errors.Is(err, context.Canceled):
			return err
		}
	}
	b, err := w.files.update(ctx, b.Owner, b.ID, func(b *record) error {
		if b.Status == cancelling {
			end = cancelled
		} else if b.Status == inProgress {
			b.enter(finalizing, w.files.now().Unix())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.finish(ctx, b, end)
}

// count counts the requests of a batch. Without any, with too many, or with two of one id, it does not run.
func (w *worker) count(ctx context.Context, b record) (total int, wrong *errorJSON, err error) {
	in, err := w.files.open(b.Owner, b.Input)
	if errors.Is(err, errUnknown) {
		return 0, &errorJSON{Code: "invalid_file", Message: fmt.Sprintf("the file %s is gone", b.Input)}, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer in.Close()
	seen := map[string]int{}
	err = batches.Each(in, b.Endpoint, func(q batches.Request, invalid *batches.ResultError) error {
		total++
		if total > w.most.requests {
			wrong = &errorJSON{Code: "too_many_requests", Line: &q.Line,
				Message: fmt.Sprintf("the file has more than %d requests; divide it", w.most.requests)}
		}
		if first := seen[q.CustomID]; q.CustomID != "" && first > 0 {
			wrong = &errorJSON{Code: "duplicate_custom_id", Line: &q.Line,
				Message: fmt.Sprintf("line %d: custom_id: it is that of line %d, too", q.Line, first)}
		}
		seen[q.CustomID] = q.Line
		if wrong != nil {
			return io.EOF
		}
		return ctx.Err()
	})
	switch {
	case wrong != nil:
		return total, wrong, nil
	case err == nil && total == 0:
		return 0, &errorJSON{Code: "empty_file", Message: "the file has no requests"}, nil
	}
	return total, nil, err
}

// requests runs the requests of a batch that have no result yet. It returns context.DeadlineExceeded if the batch has
// expired, after an error is the result of each request that is left, and context.Canceled if it was cancelled.
func (w *worker) requests(ctx context.Context, b record) error {
	out, err := w.files.results(b.Owner, b.ID)
	if err != nil {
		return err
	}
	defer out.Close()
	within, stop := context.WithTimeout(ctx, time.Unix(*b.ExpiresAt, 0).Sub(w.files.now()))
	defer stop()
	w.mu.Lock()
	w.cancels[b.ID] = stop
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.cancels, b.ID)
	}()
	saved := time.Now()
	progress := func(c batches.Counts) {
		if time.Since(saved) < saveEvery && c.Done() < b.Counts.Total {
			return
		}
		saved = time.Now()
		now, err := w.files.update(within, b.Owner, b.ID, func(b *record) error {
			b.Counts.Completed, b.Counts.Failed = c.Completed, c.Failed
			return nil
		})
		if err == nil && now.Status == cancelling { // by another server
			stop()
		}
	}
	if now, err := w.files.batch(b.Owner, b.ID); err == nil && now.Status == cancelling {
		return context.Canceled
	}
	r, in, err := w.runner(b, out, progress)
	if err != nil {
		return err
	}
	defer in.Close()
	err = r.Run(within, out, func(ctx context.Context, q batches.Request) (batches.Response, error) {
		var err error
		if q.Body, err = batches.WithPriority(q.Body, -runtime.MaxPriority); err != nil {
			return batches.Response{}, err
		}
		return w.do(ctx, b.Owner, q)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		rest, in, restErr := w.runner(b, out, progress)
		if restErr != nil {
			return restErr
		}
		defer in.Close()
		if restErr := rest.Rest(out, batches.CodeExpired, "the batch has expired before this request ran"); restErr != nil {
			return restErr
		}
	}
	return err
}

// runner returns a runner that continues results, and its input.
func (w *worker) runner(b record, out *os.File, progress func(batches.Counts)) (*batches.Runner, io.Closer, error) {
	in, err := w.files.open(b.Owner, b.Input)
	if err != nil {
		return nil, nil, fmt.Errorf("the file %s: %w", b.Input, err)
	}
	r := batches.New(in, batches.Options{Endpoint: b.Endpoint, Progress: progress})
	if err := r.Resume(out); err != nil {
		in.Close()
		return nil, nil, err
	}
	return r, in, nil
}

// finish makes the files of results of a batch, and ends it. Doing it again after a crash gives the same files.
func (w *worker) finish(ctx context.Context, b record, end string) error {
	results, err := w.files.results(b.Owner, b.ID)
	if err != nil {
		return err
	}
	defer results.Close()
	good, err := w.files.begin(b.Owner, w.most.output)
	if err != nil {
		return err
	}
	defer good.abort()
	bad, err := w.files.begin(b.Owner, w.most.output)
	if err != nil {
		return err
	}
	defer bad.abort()
	counts, err := divide(results, good, bad)
	if err != nil {
		return err
	}
	keep := func(u *upload, what string) *string {
		id := derivedID(b.ID, what)
		if u.size == 0 || err != nil {
			return nil
		}
		_, err = u.keep(id, b.ID+"_"+what+".jsonl", purposeOutput, b.OutputLife)
		return &id
	}
	output, failures := keep(good, "output"), keep(bad, "error")
	if err != nil {
		return err
	}
	_, err = w.files.update(ctx, b.Owner, b.ID, func(b *record) error {
		b.Output, b.ErrorFile = output, failures
		b.Counts.Completed, b.Counts.Failed = counts.Completed, counts.Failed
		b.enter(end, w.files.now().Unix())
		return nil
	})
	if err != nil {
		return err
	}
	return w.files.remove(b.Owner, b.ID, resultExtension)
}

// divide copies results: those of requests that succeeded, and the others.
func divide(results io.Reader, good, bad io.Writer) (c batches.Counts, err error) {
	r := bufio.NewReaderSize(results, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a part of a result is left if the batch was cancelled while it was written
			return c, nil
		}
		if err != nil {
			return c, err
		}
		var x batches.Result
		if err := json.Unmarshal(line, &x); err != nil {
			return c, err
		}
		to := bad
		if x.Succeeded() {
			to = good
			c.Completed++
		} else {
			c.Failed++
		}
		if _, err := to.Write(line); err != nil {
			return c, err
		}
	}
}
