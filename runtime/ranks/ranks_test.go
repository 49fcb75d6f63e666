package ranks

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
)

const soon = 300 * time.Millisecond

// group leads a follower that the test plays.
func group(t *testing.T) (*Leader, *link) {
	t.Helper()
	a, b := net.Pipe()
	l := lead([]net.Conn{a}, Start{Program: "1.0", Name: "demo"}, soon/20, soon)
	f := newLink(b, soon/20, soon)
	t.Cleanup(func() { l.End(nil); f.close() })
	kind, content, err := f.read()
	var s Start
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	if err != nil || kind != frameStart || s.Rank != 1 || s.Size != 2 || s.Program != "1.0" || s.Name != "demo" {
		t.Fatalf("the first message is of the kind %d: %+v, %v", kind, s, err)
	}
	return l, f
}

// drain reads what the leader sends, so that it can send more.
func drain(f *link) {
	go func() {
		for {
			if _, _, err := f.read(); err != nil {
				return
			}
		}
	}()
}

// ended waits for the end of a group, whose reason must contain a text.
func ended(t *testing.T, l *Leader, want string) {
	t.Helper()
	select {
	case <-l.Ended():
	case <-time.After(20 * soon):
		t.Fatal("the group does not end")
	}
	if err := l.Err(); !errors.Is(err, runtime.ErrRanks) || !strings.Contains(err.Error(), want) {
		t.Errorf("the group ended with %v, want %q", err, want)
	}
	if err := l.Wait(t.Context()); err == nil && len(l.followers) > 0 && l.followers[0].ready.Host == "" {
		t.Error("a group without ready followers is ready")
	}
}

func TestFollowerThatLeaves(t *testing.T) {
	l, f := group(t)
	f.close()
	ended(t, l, "lost rank 1: it has ended")
}

func TestFollowerThatStops(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	l := lead([]net.Conn{a}, Start{}, time.Hour, soon)
	if _, _, err := readFrame(b); err != nil {
		t.Fatal(err)
	}
	ended(t, l, "lost rank 1: it has not answered for 300ms")
}

func TestFollowerThatFails(t *testing.T) {
	l, f := group(t)
	drain(f)
	if err := f.write(frameFailed, []byte("its disk is full")); err != nil {
		t.Fatal(err)
	}
	ended(t, l, "rank 1: its disk is full")
}

func TestFollowerWithNonsense(t *testing.T) {
	for want, send := range map[string]func(f *link) error{
		"a message of the kind 1":           func(f *link) error { return f.write(frameStart, nil) },
		"a message of the kind 99":          func(f *link) error { return f.write(99, nil) },
		"unexpected end of JSON":            func(f *link) error { return f.write(frameReady, nil) },
		"it reports twice":                  func(f *link) error { return f.writeJSON(frameReady, Ready{}) },
		"reports on check 5, which is not ": func(f *link) error { return f.writeJSON(frameChecked, state{Number: 5}) },
	} {
		l, f := group(t)
		drain(f)
		if err := send(f); err != nil {
			t.Fatal(err)
		}
		ended(t, l, want)
	}
}

// The leader ends the group when a follower's state differs, and says where.
func TestDisagreement(t *testing.T) {
	own := state{Sequences: map[id]int{1: 10, 2: 20}, Sessions: []id{3}, Prefixes: 4, Hidden: 5, Logits: 6}
	for want, change := range map[string]func(s *state){
		"": func(*state) {},
		"sequence 2 is at position 19, on rank 0 at 20": func(s *state) { s.Sequences[2] = 19 },
		"there are 3 sequences, on rank 0 2":            func(s *state) { s.Sequences[7] = 1 },
		"the sessions are [3 9], on rank 0 [3]":         func(s *state) { s.Sessions = []id{3, 9} },
		"the prefix cache has other entries":            func(s *state) { s.Prefixes++ },
		"the hidden states of the last step":            func(s *state) { s.Hidden++ },
		"the logits of the last step":                   func(s *state) { s.Logits++ },
	} {
		l, f := group(t)
		drain(f)
		l.checks[64] = &pendingCheck{own: own, left: 1}
		theirs := own
		theirs.Number, theirs.Sequences = 64, map[id]int{1: 10, 2: 20}
		change(&theirs)
		if err := f.writeJSON(frameChecked, theirs); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			ended(t, l, "rank 1: the ranks disagree after step 64: "+want)
			continue
		}
		if err := f.writeJSON(frameReady, Ready{Host: "b"}); err != nil || l.Wait(t.Context()) != nil {
			t.Errorf("ranks that agree: %v, %v", err, l.Err())
		}
		if all := l.Ranks(Ready{Host: "a"}); len(all) != 2 || all[0].Host != "a" || all[1].Rank != 1 || all[1].Host != "b" {
			t.Errorf("the ranks are %+v", all)
		}
	}
}

// A follower refuses what does not fit, and tells the leader why.
func TestFollowerRefuses(t *testing.T) {
	cannot := errors.New("a blob is missing")
	for name, c := range map[string]struct {
		start Start
		open  error
		want  string
	}{
		"another version": {Start{Program: "2.0", Rank: 1, Size: 2}, nil, "this rank runs ingot 1.0, rank 0 2.0"},
		"no such rank":    {Start{Program: "1.0", Rank: 2, Size: 2}, nil, "rank 2 of 2"},
		"cannot load":     {Start{Program: "1.0", Rank: 1, Size: 2}, cannot, "a blob is missing"},
	} {
		a, b := net.Pipe()
		leader := newLink(a, soon/20, soon)
		said := make(chan string, 1)
		go func() {
			_ = leader.writeJSON(frameStart, c.start)
			_, content, _ := leader.read()
			said <- string(content)
		}()
		err := follow(t.Context(), b, "1.0", func(context.Context, Start) (*load.Model, error) { return nil, c.open },
			soon/20, soon)
		if !errors.Is(err, runtime.ErrRanks) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if got := <-said; !strings.Contains(got, c.want) {
			t.Errorf("%s: the leader hears %q", name, got)
		}
		leader.close()
	}
}

// While a follower loads, the end of the group cancels it.
func TestFollowerEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *link)
		want string
	}{
		"in good order": {func(l *link) { _ = l.write(frameEnd, nil) }, ""},
		"failed":        {func(l *link) { _ = l.write(frameFailed, []byte("rank 3 is gone")) }, "rank 3 is gone"},
		"killed":        {func(l *link) { l.close() }, "rank 0 has ended"},
		"stopped":       {func(l *link) { l.once.Do(func() { close(l.done) }) }, "rank 0 has not answered"},
	} {
		a, b := net.Pipe()
		leader := newLink(a, soon/20, soon)
		go func() {
			_ = leader.writeJSON(frameStart, Start{Program: "1.0", Rank: 1, Size: 2})
			go c.end(leader)
			for {
				if _, _, err := readFrame(a); err != nil {
					return
				}
			}
		}()
		err := follow(t.Context(), b, "1.0", func(ctx context.Context, _ Start) (*load.Model, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, soon/20, soon)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		leader.close()
	}
}

// The memory of a group is that of the host with least for each of its ranks.
func TestMemory(t *testing.T) {
	rank := func(host string, budget, used int64) Rank {
		return Rank{Ready: Ready{Host: host, Memory: mlx.Memory{Budget: budget, Active: used}}}
	}
	for _, c := range []struct {
		ranks     []Rank
		fractions []float64 // of a pipeline
		free      int64
	}{
		{[]Rank{rank("a", 100, 20), rank("b", 90, 20)}, nil, 70},
		{[]Rank{rank("a", 100, 20), rank("a", 100, 20)}, nil, 30},
		{[]Rank{rank("a", 100, 20), rank("b", 50, 20), rank("b", 50, 40)}, nil, 0},
		{[]Rank{rank("a", 0, 20), rank("b", 40, 20)}, nil, 20},
		{[]Rank{rank("a", 100, 20), rank("b", 90, 20)}, []float64{0.5, 0.5}, 140},
		{[]Rank{rank("a", 100, 20), rank("b", 90, 20)}, []float64{0.75, 0.25}, 106},
		{[]Rank{rank("a", 100, 20), rank("a", 100, 20)}, []float64{0.25, 0.75}, 60},
	} {
		for i := range c.ranks {
			c.ranks[i].Rank = i
		}
		if m := least(c.ranks, c.fractions, c.ranks[0].Memory); m.Budget-m.Active-m.Mapped != c.free {
			t.Errorf("%+v: %+v, want %d free", c.ranks, m, c.free)
		}
	}
	var l *Leader
	if m := l.Memory(Ready{Memory: mlx.Memory{Budget: 7}}, nil); m.Budget != 7 {
		t.Errorf("the memory of one rank is %+v", m)
	}
}
