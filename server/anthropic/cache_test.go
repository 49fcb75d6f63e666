package anthropic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/runtime"
)

// breakpointBody is a request with a breakpoint after each block: %[n]s is the cache_control of the n-th.
const breakpointBody = `{"model":"talk","max_tokens":5,%[5]s` +
	`"system":[{"type":"text","text":"Be kind."%[1]s},{"type":"text","text":"Be brief."%[2]s}],` +
	`"messages":[{"role":"user","content":[{"type":"text","text":"Once upon"%[3]s},{"type":"text","text":"a time"}]},` +
	`{"role":"assistant","content":"there was"},{"role":"user","content":[{"type":"text","text":"a dog"%[4]s}]}]}`

func TestBreakpoints(t *testing.T) {
	f := serve(t, nil)
	const short, long = `,"cache_control":{"type":"ephemeral"}`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	whole := func(first, second, third, fourth, request string) (pins []runtime.Pin, prompt string, tokens int) {
		f.postMessage(t, fmt.Sprintf(breakpointBody, first, second, third, fourth, request))
		r := f.Parrot.Last(t)
		return r.Pins, f.Prompt(t), len(r.Prompt)
	}
	pins, _, n := whole("", "", "", "", "")
	if pins != nil {
		t.Errorf("without breakpoints: %v", pins)
	}
	at := map[string]int{}
	for _, c := range []struct {
		name string
		of   [5]string
		ttls []time.Duration
	}{
		{"first system block", [5]string{short}, []time.Duration{shortTTL}},
		{"system", [5]string{"", short}, []time.Duration{shortTTL}},
		{"first message", [5]string{"", "", short}, []time.Duration{shortTTL}},
		{"last message", [5]string{"", "", "", short}, []time.Duration{shortTTL}},
		{"request", [5]string{4: strings.TrimPrefix(short, ",") + ","}, []time.Duration{shortTTL}},
		{"all", [5]string{long, short, long, short}, []time.Duration{longTTL, shortTTL}},
		{"an hour", [5]string{"", "", "", long}, []time.Duration{longTTL}},
	} {
		pins, _, _ := whole(c.of[0], c.of[1], c.of[2], c.of[3], c.of[4])
		var ttls []time.Duration
		for _, p := range pins {
			ttls = append(ttls, p.TTL)
		}
		if diff := cmp.Diff(c.ttls, ttls); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
			continue
		}
		at[c.name] = pins[0].Tokens
		if last := pins[len(pins)-1].Tokens; strings.Contains("last message request all an hour", c.name) && last != n {
			t.Errorf("%s: the last pin ends at %d of %d", c.name, last, n)
		}
	}
	if at["first system block"] <= 0 || at["first system block"] >= at["system"] || at["system"] >= at["first message"] ||
		at["first message"] >= n || at["all"] != at["first message"] {
		t.Errorf("pins end at %v of %d tokens", at, n)
	}
}

// A cache_control is a hint: one that is not understood marks no breakpoint, or the nearer time.
func TestOddBreakpoints(t *testing.T) {
	f := serve(t, nil)
	block := func(control string) string { return `{"type":"text","text":"a","cache_control":` + control + `}` }
	short := block(`{"type":"ephemeral"}`)
	for content, want := range map[string]time.Duration{
		block(`{"type":"persistent"}`):            0,
		block(`null`):                             0,
		block(`true`):                             0,
		block(`{"type":"ephemeral","ttl":5}`):     0,
		block(`{"type":"ephemeral","ttl":"2h"}`):  longTTL,
		block(`{"type":"ephemeral","ttl":"30s"}`): shortTTL,
		strings.Repeat(short+",", 9) + short:      shortTTL,
	} {
		f.postMessage(t, `{"model":"plain","max_tokens":5,"messages":[{"role":"user","content":[`+content+`]}]}`)
		pins := f.Parrot.Last(t).Pins
		if len(pins) != min(int(want), 1) || len(pins) == 1 && pins[0].TTL != want {
			t.Errorf("%s: %v, want %v", content, pins, want)
		}
	}
}

// Created tokens end with the last breakpoint, and those that were cached before are read.
func TestCacheUsage(t *testing.T) {
	stats := runtime.Stats{PromptTokens: 130, CachedTokens: 40, Tokens: 7} // a picture has grown by 30 tokens
	b := breakpoints{prompt: 100, last: runtime.Pin{Tokens: 80, TTL: shortTTL}}
	b.hour = runtime.Pin{Tokens: 20, TTL: longTTL}
	want := messagesUsage{Input: 20, Created: 70, Read: 40, Output: 7, Creation: &cacheCreation{Short: 60, Long: 10}}
	if diff := cmp.Diff(want, b.usage(stats)); diff != "" {
		t.Error(diff)
	}
	want = messagesUsage{Input: 90, Read: 40, Output: 7}
	if diff := cmp.Diff(want, breakpoints{prompt: 100}.usage(stats)); diff != "" {
		t.Error(diff)
	}
}
