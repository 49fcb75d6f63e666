package ranks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// Leader is rank 0's end of the control connections. A model on one rank has a nil Leader, whose methods do nothing.
//
// The methods of log.go run on the engine's thread, the others anywhere.
type Leader struct {
	start     Start
	followers []*follower
	log       log

	mu      sync.Mutex
	err     error // why the group has ended, or nil
	ended   chan struct{}
	ready   chan struct{} // closed when all followers are ready
	waiting int           // followers that are not ready
	checks  map[uint64]*pendingCheck
}

// follower is the leader's end of a control connection.
type follower struct {
	link  *link
	rank  int
	ready Ready
}

// pendingCheck is a state that followers have not confirmed yet.
type pendingCheck struct {
	own   state
	left  int
	begun time.Time
}

// Lead sends s to each follower, with its rank and the size, and starts to read what they send. It does not wait until
// they have loaded their parts. The connections belong to the leader.
func Lead(followers []net.Conn, s Start) *Leader {
	return lead(followers, s, pingInterval, runtime.Silence)
}

func lead(followers []net.Conn, s Start, interval, silence time.Duration) *Leader {
	s.Rank, s.Size = 0, len(followers)+1
	l := &Leader{
		start: s, log: newLog(), ended: make(chan struct{}), ready: make(chan struct{}), waiting: len(followers),
		checks: map[uint64]*pendingCheck{},
	}
	if len(followers) == 0 {
		close(l.ready)
	}
	for i, conn := range followers {
		f := &follower{link: newLink(conn, interval, silence), rank: i + 1}
		l.followers = append(l.followers, f)
	}
	for _, f := range l.followers {
		own := s
		own.Rank = f.rank
		go func() {
			if err := f.link.writeJSON(frameStart, own); err != nil {
				l.lost(f, err)
				return
			}
			l.read(f)
		}()
	}
	return l
}

// read handles what a follower sends, until the group ends.
func (l *Leader) read(f *follower) {
	for {
		kind, content, err := f.link.read()
		if err != nil {
			l.lost(f, err)
			return
		}
		switch kind {
		case frameReady:
			err = l.becameReady(f, content)
		case frameChecked:
			var s state
			if err = json.Unmarshal(content, &s); err == nil {
				err = l.compare(s)
			}
		case frameFailed:
			err = errors.New(string(content))
		default:
			err = fmt.Errorf("a message of the kind %d", kind)
		}
		if err != nil {
			l.End(fmt.Errorf("rank %d: %w", f.rank, err))
			return
		}
	}
}

// lost ends the group because the connection to a follower failed.
func (l *Leader) lost(f *follower, err error) {
	if gone := f.link.gone("it", err); gone != nil {
		err = gone
	}
	l.End(fmt.Errorf("lost rank %d: %w", f.rank, err))
}

func (l *Leader) becameReady(f *follower, content []byte) error {
	var r Ready
	if err := json.Unmarshal(content, &r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.ready.Host != "" || r.Host == "" {
		return errors.New("it reports twice that it is ready")
	}
	f.ready = r
	if l.waiting--; l.waiting == 0 {
		close(l.ready)
	}
	return nil
}

// compare compares a follower's state with the leader's.
func (l *Leader) compare(s state) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.checks[s.Number]
	if p == nil {
		return fmt.Errorf("it reports on check %d, which is not due", s.Number)
	}
	if p.left--; p.left == 0 {
		delete(l.checks, s.Number)
	}
	if d := s.differs(p.own); d != "" {
		return fmt.Errorf("the ranks disagree after step %d: %s", s.Number, d)
	}
	return nil
}

// Wait waits until all followers have loaded their parts.
func (l *Leader) Wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.ready:
		return nil
	case <-l.ended:
		return l.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns a channel that is closed when the group has ended.
func (l *Leader) Ended() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.ended
}

// Err returns why the group has ended, or nil. It matches runtime.ErrRanks.
func (l *Leader) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// End ends the group on all ranks, if it has not ended. Without a reason it ends in good order.
func (l *Leader) End(reason error) {
	if l == nil {
		return
	}
	l.mu.Lock()
	first := l.err == nil
	if first {
		why := "the model is closed"
		if reason != nil {
			why = reason.Error()
		}
		l.err = fmt.Errorf("%w: %s", runtime.ErrRanks, why)
	}
	l.mu.Unlock()
	if !first {
		return
	}
	var all sync.WaitGroup
	for _, f := range l.followers {
		all.Go(func() { // a follower that hangs must not delay the others
			if reason == nil {
				_ = f.link.write(frameEnd, nil)
			} else {
				_ = f.link.write(frameFailed, []byte(reason.Error()))
			}
			f.link.close()
		})
	}
	close(l.ended)
	if reason == nil {
		all.Wait()
	}
}

// Rank describes a rank of a running group.
type Rank struct {
	Rank int `json:"rank"`
	Ready
}

// Ranks returns the ranks, own first. It is empty before all are ready.
func (l *Leader) Ranks(own Ready) []Rank {
	if l == nil {
		return nil
	}
	select {
	case <-l.ready:
	default:
		return nil
	}
	all := []Rank{{Ready: own}}
	for _, f := range l.followers {
		all = append(all, Rank{f.rank, f.ready})
	}
	return all
}

// Usage reports on the ranks, own first.
func (l *Leader) Usage(own Ready) (all []runtime.RankUsage) {
	for i, r := range l.Ranks(own) {
		u := runtime.RankUsage{Rank: r.Rank, Host: r.Host, Weights: r.Weights}
		if i > 0 {
			u.Commands = l.followers[i-1].link.sent.Load()
		}
		all = append(all, u)
	}
	return all
}

// Measure returns what a rank reports of itself. It runs on the engine's thread.
func Measure(t *mlx.Thread, weights int64) Ready {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return Ready{Host: host, Weights: weights, Memory: t.Memory()}
}

// Memory returns the memory of the rank that has least, as if it were this one's. Ranks on one host share its memory.
// In a pipeline ranks have these fractions of the state that the leader counts; nil: each has as much as the leader.
func (l *Leader) Memory(own Ready, fractions []float64) mlx.Memory {
	if l == nil {
		return own.Memory
	}
	return least(l.Ranks(own), fractions, own.Memory)
}

func least(all []Rank, fractions []float64, own mlx.Memory) mlx.Memory {
	type host struct {
		budget, used int64
		ranks        float64
	}
	hosts := map[string]*host{}
	for _, r := range all {
		h := hosts[r.Host]
		if h == nil {
			h = &host{budget: r.Memory.Budget}
			hosts[r.Host] = h
		}
		h.budget = min(h.budget, r.Memory.Budget)
		h.used += r.Memory.Active + r.Memory.Mapped
		if fractions == nil {
			h.ranks++
		} else {
			h.ranks += max(fractions[r.Rank], 1e-6)
		}
	}
	m, free := own, int64(-1)
	for _, h := range hosts {
		budget := int64(float64(h.budget) / h.ranks)
		if f := int64(float64(max(h.budget-h.used, 0)) / h.ranks); h.budget > 0 && (free < 0 || f < free) {
			free = f
			m.Budget, m.Active, m.Mapped = budget, budget-f, 0
		}
	}
	return m
}
