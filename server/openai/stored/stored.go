// Package stored keeps responses in memory, so that later requests can continue, get, cancel and delete them.
//
// Contract:
//   - A response belongs to the owner who stored it: nobody else finds it.
//   - The number and the bytes of all responses together are bounded. The least recently used ones are evicted first;
//     using a response uses those that it continues. Nothing is written to disk.
//   - A Store is safe for concurrent use. What it returns must not be modified.
package stored

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrUnknown means that no response has an id: it was never stored, or it was deleted or evicted.
var ErrUnknown = errors.New("no response with this id is stored")

// Store keeps responses.
type Store struct {
	most     int
	mostSize int64

	mu     sync.Mutex
	byID   map[key]*Response
	items  map[key]found // the newest item with an id
	order  *list.List    // of *Response, the least recently used first
	recent *Response     // the one used last; nil: another one was stored since
	size   int64
}

// found is an item and whose it is.
type found struct {
	raw json.RawMessage
	of  *Response
}

type key struct{ owner, id string }

// New returns a store that is bounded in responses and bytes.
func New(responses int, bytes int64) *Store {
	return &Store{most: responses, mostSize: bytes, byID: map[key]*Response{},
		items: map[key]found{}, order: list.New()}
}

// Item is an item of a response's input or output.
type Item struct {
	ID  string
	Raw json.RawMessage
}

// Response is a stored response.
type Response struct {
	Owner, ID string
	Previous  string // id of the response that it continues; "": none
	Input     []Item // of its own request

	// The rest changes while the response is generated. The store's lock guards it.
	body     json.RawMessage // for the client
	output   []Item
	finished chan struct{} // closed when the response is complete
	cancel   context.CancelCauseFunc
	size     int64
	place    *list.Element // in order; nil: not stored, or not any more
}

// overhead is a bound of the memory for a response beside its texts, itemOverhead of that for an item.
const (
	overhead     = 1 << 10
	itemOverhead = 128
)

func sizeOf(items []Item) (n int64) {
	for _, it := range items {
		n += int64(len(it.ID)+len(it.Raw)) + itemOverhead
	}
	return n
}

// Begin stores a response that is being generated. cancel ends its generation. It reports false if the response is
// larger than all responses may be together, and is not stored.
func (s *Store) Begin(r *Response, body json.RawMessage, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.body, r.cancel, r.finished = body, cancel, make(chan struct{})
	r.size = overhead + int64(len(body)) + sizeOf(r.Input)
	if r.size > s.mostSize || s.most < 1 {
		return false
	}
	s.byID[key{r.Owner, r.ID}] = r
	r.place, s.recent = s.order.PushBack(r), nil
	s.size += r.size
	s.index(r, r.Input)
	s.evict(r)
	return true
}

// Finish completes a response. One that has been deleted or evicted meanwhile stays so, as does one that has become too
// large.
func (s *Store) Finish(r *Response, body json.RawMessage, output []Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := int64(len(body)-len(r.body)) + sizeOf(output)
	r.body, r.output, r.cancel = body, output, nil
	close(r.finished)
	if r.place == nil {
		return
	}
	if r.size+more > s.mostSize {
		s.remove(r)
		return
	}
	r.size += more
	s.size += more
	s.index(r, output)
	s.use(r)
	s.evict(r)
}

// evict removes responses until the rest, of which one stays, is within the bounds.
func (s *Store) evict(stays *Response) {
	for at := s.order.Front(); at != nil && (s.order.Len() > s.most || s.size > s.mostSize); {
		r := at.Value.(*Response)
		at = at.Next()
		if r != stays {
			s.remove(r)
		}
	}
}

func (s *Store) index(r *Response, items []Item) {
	for _, it := range items {
		s.items[key{r.Owner, it.ID}] = found{it.Raw, r}
	}
}

func (s *Store) remove(r *Response) {
	for _, items := range [][]Item{r.Input, r.output} {
		for _, it := range items {
			if k := (key{r.Owner, it.ID}); s.items[k].of == r {
				delete(s.items, k)
			}
		}
	}
	if s.recent == r {
		s.recent = nil
	}
	s.order.Remove(r.place)
	delete(s.byID, key{r.Owner, r.ID})
	s.size -= r.size
	r.place = nil
}

// use marks a response as used, and then those that it continues.
func (s *Store) use(r *Response) {
	if r == s.recent {
		return // one request may use it for each of its items
	}
	s.recent = r
	for seen := 0; r != nil && seen < s.most; seen++ {
		s.order.MoveToBack(r.place)
		r = s.byID[key{r.Owner, r.Previous}]
	}
}

func (s *Store) find(owner, id string) (*Response, error) {
	r := s.byID[key{owner, id}]
	if r == nil {
		return nil, unknown(id)
	}
	s.use(r)
	return r, nil
}

func unknown(id string) error {
	return fmt.Errorf("%w: %q", ErrUnknown, clip.Controls(clip.Text(id, 80)))
}

// Get returns a response for the client.
func (s *Store) Get(owner, id string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(owner, id)
	if err != nil {
		return nil, err
	}
	return r.body, nil
}

// Delete deletes a response, and cancels it if it is being generated.
func (s *Store) Delete(owner, id string, cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(owner, id)
	if err != nil {
		return err
	}
	s.remove(r)
	if r.cancel != nil {
		r.cancel(cause)
	}
	return nil
}

// Cancel cancels a response that is being generated and waits until that has ended. running is false if it had ended
// before.
func (s *Store) Cancel(ctx context.Context, owner, id string, cause error) (body json.RawMessage, running bool,
	err error) {
	s.mu.Lock()
	r, err := s.find(owner, id)
	if err != nil {
		s.mu.Unlock()
		return nil, false, err
	}
	if running = r.cancel != nil; running {
		r.cancel(cause)
	}
	s.mu.Unlock()
	select {
	case <-r.finished:
	case <-ctx.Done():
		return nil, running, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.body, running, nil
}

// Conversation returns the items of a response and of all that it continues, in order. With output, the last ones are
// those of the response; otherwise they are those of its own input. It is an error if one of the responses is still
// being generated or has been deleted or evicted.
func (s *Store) Conversation(owner, id string, output bool) ([]Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, err := s.find(owner, id)
	if err != nil {
		return nil, err
	}
	if output && last.cancel != nil {
		return nil, fmt.Errorf("response %s is not complete: wait for it", last.ID)
	}
	chain := []*Response{last}
	for r := last; r.Previous != ""; chain = append(chain, r) {
		id := r.Previous
		if r = s.byID[key{owner, id}]; r == nil {
			return nil, unknown(id)
		}
	}
	var items []Item
	for i := len(chain) - 1; i >= 0; i-- {
		items = append(items, chain[i].Input...)
		if i > 0 || output {
			items = append(items, chain[i].output...)
		}
	}
	return items, nil
}

// Item returns an item of any of an owner's responses.
func (s *Store) Item(owner, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.items[key{owner, id}]
	if ok {
		s.use(it.of)
	}
	return it.raw, ok
}
