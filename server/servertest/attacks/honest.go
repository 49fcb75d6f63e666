// Package attacks has honest clients and attackers of a server, for a test and for a benchmark.
package attacks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Target is a server. Models are names.
type Target struct {
	Address string // HOST:PORT
	Model   string // of honest clients
	Victim  string // whose tokens attackers use; "": Model
	Long    int    // the id of a long token of Victim
}

// Honest are clients that send one request after the other.
type Honest struct {
	Clients int
	Each    int // requests of a client
	Tokens  int // of a response
}

// Result is what honest clients got.
type Result struct {
	First  []time.Duration // until the first token of each response, with waiting for a server that is busy
	Busy   int             // responses that told to come again
	Failed []error
}

// Quantile returns the time that a share of the responses began within.
func (r Result) Quantile(share float64) time.Duration {
	if len(r.First) == 0 {
		return 0
	}
	list := slices.Sorted(slices.Values(r.First))
	return list[min(int(share*float64(len(list))), len(list)-1)]
}

// Run sends the requests and waits for all responses.
func (h Honest) Run(ctx context.Context, to Target) Result {
	transport := &http.Transport{MaxIdleConnsPerHost: h.Clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var mu sync.Mutex
	var all Result
	var clients sync.WaitGroup
	for i := range h.Clients {
		clients.Go(func() {
			for j := range h.Each {
				first, busy, err := h.stream(ctx, client, to, fmt.Sprintf("Once upon a time %d there was %d", i, j))
				mu.Lock()
				all.Busy += busy
				if err != nil {
					all.Failed = append(all.Failed, err)
				} else {
					all.First = append(all.First, first)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return all
}

// errBusy reports that the server told to come again.
var errBusy = errors.New("the server is busy")

// mostBusy is how often a client comes again.
const mostBusy = 60

// stream sends a request, again if the server is busy, and reads the response.
func (h Honest) stream(ctx context.Context, c *http.Client, to Target, prompt string) (first time.Duration, busy int,
	err error) {
	begun := time.Now()
	for {
		var at time.Time
		var after time.Duration
		at, after, err = h.try(ctx, c, to, prompt)
		if !errors.Is(err, errBusy) || busy == mostBusy {
			return at.Sub(begun), busy, err
		}
		busy++
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return 0, busy, ctx.Err()
		}
	}
}

// try sends a request once. It returns when the first token came, or how long to wait with errBusy.
func (h Honest) try(ctx context.Context, c *http.Client, to Target,
	prompt string) (first time.Time, after time.Duration, err error) {
	body, err := json.Marshal(map[string]any{
		"model": to.Model, "prompt": prompt, "options": map[string]any{"num_predict": h.Tokens, "ignore_eos": true},
	})
	if err != nil {
		return first, 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.Address+"/api/generate", bytes.NewReader(body))
	if err != nil {
		return first, 0, err
	}
	response, err := c.Do(r)
	if err != nil {
		return first, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			return first, 0, fmt.Errorf("status 503 without Retry-After")
		}
		return first, time.Duration(seconds) * time.Second, errBusy
	}
	if response.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return first, 0, fmt.Errorf("status %d: %s", response.StatusCode, b)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var m struct {
			Response string `json:"response"`
			Done     bool   `json:"done"`
			Error    string `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return first, 0, err
		}
		if m.Error != "" {
			return first, 0, fmt.Errorf("in a stream: %s", m.Error)
		}
		if first.IsZero() && (m.Response != "" || m.Done) {
			first = time.Now()
		}
		if m.Done {
			return first, 0, nil
		}
	}
	return first, 0, errors.New("a stream ended early")
}
