package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	texts      = 4    // number of shared prompt prefixes
	textWords  = 24   // words of each prefix
	ownWords   = 4    // words of a request's own, after the prefix
	mostTokens = 24   // max tokens of a response; the least is a quarter of it
	cutOff     = 0.25 // share of requests that are canceled
	cutAfter   = 4 * time.Second

	readers     = 4 // clients of the second part
	slowReaders = 8
	turns       = 4 // rounds, each with and without slow readers
	turnLength  = 8 * time.Second
	slowPause   = 500 * time.Millisecond // before each read of a slow reader
	slowRead    = 64                     // bytes per read
)

func copyTo(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}

// tally collects what the clients measure.
type tally struct {
	sync.Mutex
	done, cancelled, tokens, prompt, cached int
	first, next, whole                      []float64 // ms
	errors                                  []string
}

// words returns n random words of a small vocabulary.
func words(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = []string{"the", "a", "river", "stone", "light", "old", "keeps", "turns", "under", "every", "sea", "and",
			"night", "runs"}[r.IntN(14)]
	}
	return strings.Join(list, " ")
}

// ask sends one request and reads its response. It cancels the request after cut, if cut is not 0.
func (t *tally) ask(ctx context.Context, client *http.Client, url string, q question, cut time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if cut > 0 {
		defer time.AfterFunc(cut, cancel).Stop()
	}
	begun := time.Now()
	var first, next []float64
	var end piece
	err := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/generate", strings.NewReader(q.body()))
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		lines := bufio.NewReader(answer.Body)
		last := begun
		for !end.Done {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("the response ended early: %w", err)
			}
			end = piece{}
			if err := json.Unmarshal(line, &end); err != nil || end.Error != "" || answer.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d: %s", answer.StatusCode, line)
			}
			now := time.Now()
			if took := float64(now.Sub(last)) / 1e6; last == begun {
				first = append(first, took)
			} else if !end.Done {
				next = append(next, took)
			}
			last = now
		}
		return nil
	}()
	t.Lock()
	defer t.Unlock()
	switch {
	case err == nil:
		t.done++
		t.tokens += end.Stats.Tokens
		t.prompt += end.Stats.Prompt
		t.cached += end.Stats.Cached
		t.whole = append(t.whole, float64(time.Since(begun))/1e6)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		t.cancelled++
	default:
		t.errors = append(t.errors, err.Error())
	}
	t.first, t.next = append(t.first, first...), append(t.next, next...)
}

// crowd runs the clients until the time is over. Running requests may finish.
func crowd(ctx context.Context, s *served, o options, client *http.Client, t *tally) {
	shared := rand.New(rand.NewPCG(1, 1))
	begins := make([]string, texts)
	for i := range begins {
		begins[i] = words(shared, textWords)
	}
	end := time.Now().Add(o.length)
	var wg sync.WaitGroup
	for i := range o.clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			for time.Now().Before(end) && ctx.Err() == nil {
				q := question{Model: o.image, Raw: true, Prompt: begins[r.IntN(texts)] + " " + words(r, ownWords)}
				q.Options = map[string]any{"num_predict": mostTokens/4 + r.IntN(mostTokens*3/4+1),
					"temperature": float64(r.IntN(2)), "seed": r.IntN(1 << 20)}
				cut := time.Duration(0)
				if r.Float64() < cutOff {
					cut = 1 + time.Duration(r.Float64()*float64(cutAfter))
				}
				t.ask(ctx, client, s.url, q, cut)
			}
		})
	}
	wg.Wait()
}

// beside measures the median time between tokens of a few clients, alone and next to slow readers.
func beside(ctx context.Context, s *served, o options, client *http.Client, errs *tally) (alone, slow float64) {
	found := [2][]float64{}
	for turn := range 2 * turns {
		ctx, cancel := context.WithTimeout(ctx, turnLength)
		t := &tally{}
		var wg sync.WaitGroup
		if turn%2 == 1 {
			for i := range slowReaders {
				wg.Go(func() { drip(ctx, client, s.url, o, i) })
			}
		}
		for i := range readers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(3, uint64(turn/2*readers+i)))
				for ctx.Err() == nil {
					q := question{Model: o.image, Raw: true, Prompt: words(r, ownWords),
						Options: map[string]any{"num_predict": mostTokens, "temperature": 0.0}}
					t.ask(ctx, client, s.url, q, 0)
				}
			})
		}
		wg.Wait()
		cancel()
		found[turn%2] = append(found[turn%2], t.next...)
		for _, e := range t.errors {
			if !strings.Contains(e, context.DeadlineExceeded.Error()) {
				errs.errors = append(errs.errors, e)
			}
		}
	}
	return middle(found[0]), middle(found[1])
}

// drip requests a short response with large log-probabilities and reads it slowly.
func drip(ctx context.Context, client *http.Client, url string, o options, i int) {
	const request = `{"model":%q,"prompt":"client %d","raw":true,"logprobs":true,"top_logprobs":20,` +
		`"options":{"num_predict":4}}`
	body := fmt.Sprintf(request, o.image, i)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/generate", strings.NewReader(body))
	if err != nil {
		return
	}
	answer, err := client.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	for buf := make([]byte, slowRead); err == nil; {
		select {
		case <-time.After(slowPause):
			_, err = answer.Body.Read(buf)
		case <-ctx.Done():
			return
		}
	}
}

// figures are the statistics of one kind of latency.
type figures struct {
	P50       float64        `json:"p50"`
	P90       float64        `json:"p90"`
	P99       float64        `json:"p99"`
	Histogram map[string]int `json:"histogram"` // by upper bound in ms, powers of two
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return quantile(list, 0.5)
}

func summarize(list []float64) figures {
	slices.Sort(list)
	f := figures{quantile(list, 0.5), quantile(list, 0.9), quantile(list, 0.99), map[string]int{}}
	for _, v := range list {
		bound := 1
		for float64(bound) < v {
			bound *= 2
		}
		f.Histogram[fmt.Sprint(bound)]++
	}
	return f
}

func measure(ctx context.Context, s *served, o options) (*result, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.clients}}
	warm := &tally{}
	for range 2 {
		warm.ask(ctx, client, s.url, question{Model: o.image, Prompt: "warm", Raw: true,
			Options: map[string]any{"num_predict": 8}}, 0)
	}
	if len(warm.errors) > 0 {
		return nil, errors.New(warm.errors[0])
	}
	client.CloseIdleConnections()
	time.Sleep(time.Second)
	files, memory := s.files(), s.memory()
	begun, t := time.Now(), &tally{}
	half := make(chan int, 1)
	time.AfterFunc(o.length/2, func() { half <- s.memory() })
	crowd(ctx, s, o, client, t)
	r := &result{Clients: o.clients, Seconds: time.Since(begun).Seconds(), Done: t.done, Cancelled: t.cancelled,
		Tokens: t.tokens}
	r.First, r.Token, r.Request = summarize(t.first), summarize(t.next), summarize(t.whole)
	r.P50, r.P99 = r.Request.P50, r.Request.P99
	r.CachedShare = float64(t.cached) / float64(max(t.prompt, 1))
	if alone, slow := beside(ctx, s, o, client, t); alone > 0 {
		r.SlowReader = slow / alone
	}
	client.CloseIdleConnections()
	time.Sleep(2 * time.Second)
	left, err := s.left(o.image)
	if err != nil {
		return nil, err
	}
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(time.Second)
	r.Left, r.Files, r.Memory = left, [2]int{files, s.files()}, [3]int{memory, <-half, s.memory()}
	r.Errors, r.Messages = len(t.errors), t.errors[:min(len(t.errors), 5)]
	return r, cmp.Or(ctx.Err(), nil)
}
