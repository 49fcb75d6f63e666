package runner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/runtime"
)

// toChild is a message from the parent. Exactly one of Generate, Embed, Cancel and Usage is set.
type toChild struct {
	ID       uint64                `json:"id"`
	Generate *runtime.Request      `json:"generate,omitempty"`
	Embed    *runtime.EmbedRequest `json:"embed,omitempty"`
	Cancel   bool                  `json:"cancel,omitempty"`
	Usage    bool                  `json:"usage,omitempty"`
}

// toParent is a message from the child. Without an ID it is about the child itself: the progress of its load, that it
// is ready, that it is alive, the error of its load, or why it can run no more requests.
type toParent struct {
	ID     uint64         `json:"id,omitempty"`
	Event  *event         `json:"event,omitempty"`
	Vector vector         `json:"vector,omitempty"` // of the next input of an Embed request
	Usage  *runtime.Usage `json:"usage,omitempty"`
	Error  *wireFailure   `json:"error,omitempty"`
	Queued bool           `json:"queued,omitempty"` // the request has entered the queue
	Ended  bool           `json:"ended,omitempty"`  // the last message about the request
	Ready  bool           `json:"ready,omitempty"`
	GPU    bool           `json:"gpu,omitempty"`    // with Ready: the model computes on a GPU
	Loaded float64        `json:"loaded,omitempty"` // 0 to 1
	Alive  int            `json:"alive,omitempty"`  // a sign of life, and the seconds in which another one follows
}

// event encodes a runtime.Event. Its keys are short because there is one event for each token.
type event struct {
	IDs     []int32       `json:"i,omitempty"`
	Text    string        `json:"t,omitempty"`
	Done    string        `json:"d,omitempty"`
	Stop    string        `json:"st,omitempty"`
	Prompt  int           `json:"p,omitempty"`
	Cached  int           `json:"c,omitempty"`
	PromptT time.Duration `json:"pt,omitempty"`
	Tokens  int           `json:"n,omitempty"`
	GenTime time.Duration `json:"nt,omitempty"`

	Drafted     int `json:"dr,omitempty"`
	Accepted    int `json:"da,omitempty"`
	TargetSteps int `json:"s,omitempty"`

	LogProbs []runtime.LogProb `json:"l,omitempty"`
	Scored   []runtime.LogProb `json:"pl,omitempty"` // PromptLogProbs
	End      *runtime.LogProb  `json:"el,omitempty"` // EndLogProb
	LeftOut  []string          `json:"lo,omitempty"`
}

// vector encodes an embedding as little-endian float32 elements, which take a quarter of the space of decimal text.
type vector []byte

func wireVector(x []float32) vector {
	v := make(vector, 0, 4*len(x))
	for _, e := range x {
		v = binary.LittleEndian.AppendUint32(v, math.Float32bits(e))
	}
	return v
}

func (v vector) vector() []float32 {
	x := make([]float32, len(v)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(v[4*i:]))
	}
	return x
}

func wireEvent(e runtime.Event) *event {
	s := e.Stats
	return &event{
		e.IDs, e.Text, string(e.Done), e.Stop, s.PromptTokens, s.CachedTokens, s.PromptTime, s.Tokens, s.GenerateTime,
		s.Drafted, s.Accepted, s.TargetSteps, e.LogProbs, e.PromptLogProbs,
		e.EndLogProb, e.LeftOut,
	}
}

func (e *event) event() runtime.Event {
	return runtime.Event{
		IDs: e.IDs, Text: e.Text, LogProbs: e.LogProbs, PromptLogProbs: e.Scored, EndLogProb: e.End,
		Done: runtime.DoneReason(e.Done), Stop: e.Stop, LeftOut: e.LeftOut,
		Stats: runtime.Stats{
			PromptTokens: e.Prompt, CachedTokens: e.Cached, PromptTime: e.PromptT, Tokens: e.Tokens, GenerateTime: e.GenTime,
			Drafted: e.Drafted, Accepted: e.Accepted, TargetSteps: e.TargetSteps,
		},
	}
}

// wireFailure encodes an error.
type wireFailure struct {
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	// RetryAfter is the After of a runtime.RetryError in milliseconds; nil: it is another error.
	RetryAfter *int64 `json:"retry_after,omitempty"`
}

// wireError encodes an error with its name in package fault's table, if it has one there.
func wireError(err error) *wireFailure {
	f := &wireFailure{Kind: fault.WireName(err), Message: clip.Middle(err.Error(), limits.Message)}
	if after, ok := runtime.RetryAfter(err); ok {
		f.RetryAfter = new(after.Milliseconds())
	}
	return f
}

// remoteError is an error of the child.
type remoteError struct {
	message string
	kind    error
}

func (e *remoteError) Error() string { return e.message }
func (e *remoteError) Unwrap() error { return e.kind }

func (f *wireFailure) error() error {
	if f == nil {
		return errors.New("the model's process sent no reply")
	}
	err := &remoteError{message: f.Message, kind: fault.OfWire(f.Kind)}
	if f.RetryAfter != nil {
		return &runtime.RetryError{Err: err, After: time.Duration(*f.RetryAfter) * time.Millisecond}
	}
	return err
}

// lines writes values as lines of JSON. It is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}
