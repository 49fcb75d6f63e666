package runner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/internal/stream"
)

// ErrDied reports that the model's process ended unexpectedly.
var ErrDied = fault.Register(errors.New("the model's process died"), fault.Kind{
	Name: "runtime/runner.ErrDied", Means: "the model's process ended unexpectedly",
	Rank: fault.Process + 1, Status: fault.Internal,
})

var errClosed = errors.New("the model was closed")

// Options says how a child is started.
type Options struct {
	Command []string           // program and arguments; the program must call Serve
	Env     []string           // nil: the parent's environment
	Loaded  func(part float64) // reports the progress of loading, 0 to 1; may be nil
	Stderr  io.Writer          // receives a copy of the child's standard error; may be nil
	Grace   time.Duration      // how long Close waits before it kills the child; 0: 10 s

	interval time.Duration // between looks for signs of life; 0: lifeInterval. Replaced by tests.
}

const defaultGrace = 10 * time.Second

// Runner is the parent's end of a child process.
type Runner struct {
	cmd   *child.Cmd
	in    io.WriteCloser
	out   *lines
	tail  *tail
	grace time.Duration
	tick  time.Duration // between looks for signs of life
	gpu   bool          // set before Start returns

	mu      sync.Mutex
	streams map[uint64]*stream.Stream[toParent] // nil when the child has ended
	reports map[uint64]chan toParent            // of requests for usage; capacity 1
	next    uint64
	closing bool
	hangs   time.Duration // if not 0: the child was killed because it showed no sign of life in that time
	err     error         // why the child ended; set before done is closed

	done chan struct{}
}

// Start runs a child and waits until its model is loaded. If ctx ends before that, it kills the child.
func Start(ctx context.Context, o Options) (*Runner, error) {
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	r := &Runner{
		cmd:  child.Command(context.Background(), o.Env, o.Command[0], o.Command[1:]...),
		tail: &tail{copy: o.Stderr}, grace: o.Grace, tick: cmp.Or(o.interval, lifeInterval),
		streams: map[uint64]*stream.Stream[toParent]{}, reports: map[uint64]chan toParent{}, done: make(chan struct{}),
	}
	r.cmd.Stderr = r.tail
	r.cmd.WaitDelay = time.Second // for processes that the child itself may have started
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the model's process: %w", err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the model's process: %w", err)
	}
	r.out = &lines{w: r.in}
	if err := r.cmd.StartTied(r.done); err != nil {
		return nil, fmt.Errorf("start the model's process: %w", err)
	}
	ready := make(chan error, 1)
	go r.readMessages(out, o.Loaded, ready)
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

// PID returns the child's process id.
func (r *Runner) PID() int { return r.cmd.Process.Pid }

// GPU reports whether the model computes on a GPU.
func (r *Runner) GPU() bool { return r.gpu }

// Done returns a channel that is closed when the child has ended.
func (r *Runner) Done() <-chan struct{} { return r.done }

// Err returns why the child ended: nil after Close, else what the child said last, or an ErrDied. It is nil while the
// child runs.
func (r *Runner) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

// readMessages handles the child's messages until they end, and then waits for the process.
func (r *Runner) readMessages(out io.Reader, loaded func(float64), ready chan<- error) {
	reported := false // whether ready has its value
	d := json.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	life := make(chan int, 1) // gets the seconds in which the next sign of life follows
	go r.watch(life)
	var garbled, last error // last says why a child with a model ends
	for {
		var m toParent
		if err := d.Decode(&m); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				garbled = err
			}
			break
		}
		switch {
		case m.ID != 0:
			r.deliver(m)
		case m.Ready:
			reported, r.gpu = true, m.GPU
			ready <- nil
		case m.Alive > 0:
			select {
			case life <- m.Alive:
			default:
			}
		case m.Error != nil && reported:
			last = m.Error.error()
		case m.Error != nil:
			reported = true
			ready <- m.Error.error()
		case loaded != nil:
			loaded(m.Loaded)
		}
	}
	if garbled != nil {
		_ = r.cmd.Process.Kill()
	}
	err := r.death(r.cmd.Wait(), garbled)
	if last != nil {
		err = last
	}
	r.mu.Lock()
	switch {
	case r.closing:
		err = nil
	case r.hangs > runtime.Silence: // it leads no group
		err = fmt.Errorf("%w: it %w for %v, and was killed", ErrDied, runtime.ErrSilent, r.hangs)
	case r.hangs > 0:
		err = fmt.Errorf("%w: rank 0: its process %w for %v", runtime.ErrRanks, runtime.ErrSilent, r.hangs)
	}
	r.err = err
	streams := r.streams
	r.streams = nil
	r.mu.Unlock()
	if !reported {
		ready <- r.ended()
	}
	close(r.done) // first, so that whoever asks again after an error finds that this child has ended
	for _, s := range streams {
		s.End(r.ended())
	}
}

// ended returns the error for requests of a child that has ended.
func (r *Runner) ended() error {
	if r.err != nil {
		return r.err
	}
	return errClosed
}

// busError is the name that the system and Go's runtime use for the signal after a failed read of mapped memory.
const busError = "SIGBUS"

// death returns an error that says how the child ended, with the last lines of its standard error.
func (r *Runner) death(err, garbled error) error {
	how := "it ended by itself"
	var exit *exec.ExitError
	switch {
	case garbled != nil:
		how = "it wrote an invalid message: " + garbled.Error()
	case errors.As(err, &exit):
		how = exit.ProcessState.String()
		if endedBy(exit.ProcessState, "SIGKILL") {
			how += ", as the system does when memory runs out"
		}
	case err != nil:
		how = err.Error()
	}
	lastLines := r.tail.last()
	if cut, ok := strings.CutPrefix(lastLines, lastWord+mlx.Truncated); ok {
		return fmt.Errorf("%w: %s%s", ErrDied, mlx.Truncated, cut)
	}
	if strings.HasPrefix(lastLines, busError) || exit != nil && endedBy(exit.ProcessState, busError) {
		how += "; a file of the model cannot be read, `ingot fsck` finds it"
	}
	if lastLines != "" {
		how += "; its last words: " + lastLines
	}
	return fmt.Errorf("%w: %s", ErrDied, how)
}

// endGrace is how long the requests of a child whose group of ranks has ended wait for the end of the child.
const endGrace = time.Second

func (r *Runner) deliver(m toParent) {
	r.mu.Lock()
	s := r.streams[m.ID]
	if report := r.reports[m.ID]; report != nil {
		report <- m
		delete(r.reports, m.ID)
	}
	groupEnded := m.Error != nil && errors.Is(m.Error.error(), runtime.ErrRanks)
	if m.Ended && !groupEnded {
		delete(r.streams, m.ID)
	}
	r.mu.Unlock()
	switch {
	case s == nil: // its caller has stopped reading
	case (m.Event != nil || m.Vector != nil || m.Queued) && !s.Put(m):
		go r.leave(m.ID) // not here: the child may wait for this reader before it reads
	case groupEnded: // the child ends, too; whoever asks again after the error gets the next one
		time.AfterFunc(endGrace, func() { s.End(m.Error.error()) })
	case m.Error != nil:
		s.End(m.Error.error())
	case m.Ended:
		s.End(nil)
	}
}

// Generate implements runtime.Engine.
func (r *Runner) Generate(ctx context.Context, req runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		var last runtime.Stats
		err := r.ask(ctx, toChild{Generate: &req}, func(m toParent) bool {
			if m.Queued {
				if req.Queued != nil {
					req.Queued()
				}
				return true
			}
			e := m.Event.event()
			last = e.Stats
			return yield(e, nil)
		})
		if err != nil {
			yield(runtime.Event{Stats: last}, err)
		}
	}
}

// Embed implements runtime.Embedder.
func (r *Runner) Embed(ctx context.Context, req runtime.EmbedRequest) (e runtime.Embeddings, err error) {
	for _, ids := range req.Inputs {
		e.Tokens += len(ids)
	}
	err = r.ask(ctx, toChild{Embed: &req}, func(m toParent) bool {
		e.Vectors = append(e.Vectors, m.Vector.vector())
		return true
	})
	if err != nil {
		return runtime.Embeddings{}, err
	}
	return e, nil
}

// ask sends a request and passes the child's messages about it to each, until the request ends or each returns false.
func (r *Runner) ask(ctx context.Context, m toChild, each func(toParent) bool) error {
	s := stream.Bounded(untaken)
	id, err := r.send(m, func(id uint64) { r.streams[id] = s })
	defer r.leave(id)
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("a parameter is %s, which is not a finite number: %w", unsupported.Str, runtime.ErrSampling)
	}
	if err != nil {
		return err
	}
	return s.Each(ctx, each)
}

// send assigns an id to a message, calls answers with it to register for the replies, and then sends the message.
func (r *Runner) send(m toChild, register func(id uint64)) (uint64, error) {
	r.mu.Lock()
	if r.streams == nil || r.closing {
		r.mu.Unlock()
		<-r.done
		return 0, r.ended()
	}
	r.next++
	m.ID = r.next
	register(m.ID)
	r.mu.Unlock()
	err := r.out.write(m)
	var unsupported *json.UnsupportedValueError
	if err != nil && !errors.As(err, &unsupported) {
		<-r.done // a child that does not read has ended
		err = r.ended()
	}
	return m.ID, err
}

// Usage implements runtime.Reporter.
func (r *Runner) Usage(ctx context.Context) (runtime.Usage, error) {
	report := make(chan toParent, 1)
	id, err := r.send(toChild{Usage: true}, func(id uint64) { r.reports[id] = report })
	if err != nil {
		return runtime.Usage{}, err
	}
	select {
	case m := <-report:
		if m.Error != nil || m.Usage == nil {
			return runtime.Usage{}, m.Error.error()
		}
		return *m.Usage, nil
	case <-r.done:
		return runtime.Usage{}, r.ended()
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.reports, id)
		r.mu.Unlock()
		return runtime.Usage{}, ctx.Err()
	}
}

// leave removes a request and cancels it in the child if it is still running.
func (r *Runner) leave(id uint64) {
	r.mu.Lock()
	_, running := r.streams[id]
	delete(r.streams, id)
	r.mu.Unlock()
	if running {
		_ = r.out.write(toChild{ID: id, Cancel: true})
	}
}

// Close implements runtime.Engine: it ends the child and waits for it. Running requests end with an error.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.in.Close()
	t := time.NewTimer(r.grace)
	defer t.Stop()
	select {
	case <-r.done:
	case <-t.C:
		r.kill()
	}
	return nil
}

func (r *Runner) kill() {
	_ = r.cmd.Process.Kill()
	r.in.Close()
	<-r.done
}
